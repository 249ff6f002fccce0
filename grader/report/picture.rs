//! The error map as a PNG: where a grid is wrong, and by how much. [`reads`] draws how often each cell is read.
//!
//! One square a bin. Its area is the share of the bin's cells that are wrong, its colour the decade of the largest error:
//! the colours fall in lightness from small to large, so they can be told apart without seeing hue and in print. A bin
//! with a NaN or an infinity is a cross, and the bin of the first mismatch wears a frame. Same report, same bytes.

use super::{ErrorMap, Report};
use crate::judge::error_map::{DECADES, NOT_FINITE};

pub mod reads;

/// Pixels around the bins, so that a frame at a corner fits.
pub const MARGIN: usize = 3;
/// Pixels a side that the bins fill at most, unless that made a bin larger than [`LARGEST`].
const SIDE: usize = 512;
const LARGEST: usize = 64;
/// Side of the smallest square drawn, pixels.
const SMALLEST: f64 = 3.0;

const GROUND: u8 = 0;
const INK: u8 = 1;
/// Palette index of the smallest decade.
const FIRST_DECADE: u8 = 2;

/// A colour, red, green, blue.
pub type Colour = [u8; 3];

/// The ground on which the bins lie, and the ink of crosses and of the frame.
pub const PAPER: [Colour; 2] = [[0xf4, 0xf5, 0xf7], [0x0b, 0x0d, 0x12]];
/// Colours of the decades of the relative error, smallest first (matplotlib's plasma, turned round).
pub const SHADES: [Colour; DECADES.len()] = [
    [0xfc, 0xce, 0x25],
    [0xfc, 0xa6, 0x36],
    [0xf2, 0x84, 0x4b],
    [0xe1, 0x64, 0x62],
    [0xcc, 0x47, 0x78],
    [0xa8, 0x22, 0x96],
    [0x7e, 0x03, 0xa8],
    [0x41, 0x04, 0x9d],
];

/// The error map of a report as a PNG file's bytes; `None` when every cell was right.
pub fn error_map(report: &Report) -> Option<Vec<u8>> {
    let map = report.error_map.as_ref()?;
    let mut bins = Bins::new(map.bins());
    for row in 0..map.bins() {
        for column in 0..map.bins() {
            if let Some((share, error)) = map.at(row, column) {
                bins.bin(row, column, share, error);
            }
        }
    }
    if let Some(first) = &report.first_mismatch {
        bins.frame(bin_of(map, first.row), bin_of(map, first.column));
    }
    bins.canvas.png()
}

/// Pixels a side of the map's picture, margins included.
pub fn side(map: &ErrorMap) -> u32 {
    let bins = map.bins();
    (pixels_a_bin(bins) * bins + 2 * MARGIN) as u32
}

fn pixels_a_bin(bins: usize) -> usize {
    (SIDE / bins).min(LARGEST)
}

/// The bin of a row or column.
fn bin_of(map: &ErrorMap, at: u32) -> usize {
    ((at / map.bin.max(1)) as usize).min(map.bins() - 1)
}

/// Palette indices, row-major.
struct Canvas {
    /// Pixels across and down.
    width: usize,
    height: usize,
    pixels: Vec<u8>,
}

impl Canvas {
    fn blank(width: usize, height: usize) -> Self {
        let (width, height) = (width.max(1), height.max(1));
        Self { width, height, pixels: vec![GROUND; width * height] }
    }

    fn set(&mut self, x: usize, y: usize, colour: u8) {
        if x < self.width && y < self.height {
            self.pixels[y * self.width + x] = colour;
        }
    }

    /// A rectangle from its left upper corner.
    fn fill(&mut self, (left, top): (usize, usize), (width, height): (usize, usize), colour: u8) {
        for y in top..top + height {
            for x in left..left + width {
                self.set(x, y, colour);
            }
        }
    }

    fn png(&self) -> Option<Vec<u8>> {
        // Two pixels a byte: the palette has fewer than sixteen colours.
        let packed: Vec<u8> = self
            .pixels
            .chunks(self.width)
            .flat_map(|row| row.chunks(2).map(|pair| pair[0] << 4 | pair.get(1).copied().unwrap_or(GROUND)))
            .collect();
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, self.width as u32, self.height as u32);
        encoder.set_color(png::ColorType::Indexed);
        encoder.set_depth(png::BitDepth::Four);
        encoder.set_palette(PAPER.iter().chain(&SHADES).flatten().copied().collect::<Vec<u8>>());
        encoder.set_compression(png::Compression::High);
        encoder.add_text_chunk("Software".to_owned(), "heat-grader".to_owned()).ok()?;
        let mut writer = encoder.write_header().ok()?;
        writer.write_image_data(&packed).ok()?;
        writer.finish().ok()?;
        Some(bytes)
    }
}

/// A canvas of square bins.
struct Bins {
    canvas: Canvas,
    /// Pixels a side of a bin.
    bin: usize,
}

impl Bins {
    fn new(bins: usize) -> Self {
        let bin = pixels_a_bin(bins);
        let side = bin * bins + 2 * MARGIN;
        Self { canvas: Canvas::blank(side, side), bin }
    }

    fn bin(&mut self, row: usize, column: usize, share: f64, error: u8) {
        let (left, top) = (MARGIN + column * self.bin, MARGIN + row * self.bin);
        if error == NOT_FINITE {
            for at in 0..self.bin - 1 {
                for (x, y) in [(at, at), (self.bin - 2 - at, at)] {
                    self.canvas.set(left + x, top + y, INK);
                    self.canvas.set(left + x + 1, top + y, INK);
                }
            }
            return;
        }
        let decade = DECADES.iter().position(|letter| *letter == error).unwrap_or(0) as u8;
        // One pixel stays free between full bins.
        let room = self.bin - 1;
        let side = ((room as f64 * share.sqrt()).round().max(SMALLEST) as usize).min(room);
        let off = (room - side) / 2;
        self.canvas.fill((left + off, top + off), (side, side), FIRST_DECADE + decade);
    }

    /// A frame two pixels wide just outside a bin.
    fn frame(&mut self, row: usize, column: usize) {
        let (left, top) = (MARGIN + column * self.bin, MARGIN + row * self.bin);
        for out in [2, 3] {
            let (x0, y0) = (left - out, top - out);
            let length = self.bin - 2 + 2 * out;
            for at in 0..=length {
                for (x, y) in [(at, 0), (at, length), (0, at), (length, at)] {
                    self.canvas.set(x0 + x, y0 + y, INK);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::Grid;
    use crate::report::{FirstMismatch, Real};

    /// A report on a grid of which the cells at (row, column) hold other values.
    fn report(n: usize, cells: &[(usize, usize, f32)]) -> Report {
        let want = Grid::initial(n, 1);
        let mut have = want.cells().to_vec();
        for &(row, column, value) in cells {
            have[row * n + column] = value;
        }
        let map = ErrorMap::between(&want, &Grid::from_cells(n, have).expect("same size"), 1e-6);
        let first = FirstMismatch {
            n: n as u32,
            r: Real(0.2),
            steps: 2,
            launch: 1,
            last_right: 0,
            row: cells[0].0 as u32,
            column: cells[0].1 as u32,
            expected: Real(0.0),
            got: Real(1.0),
            difference: Real(1.0),
            block: None,
            thread: None,
            line: None,
            around: None,
        };
        Report { error_map: Some(map), first_mismatch: Some(first), ..Report::blank() }
    }

    /// Width, height, and the colour of each pixel.
    pub fn decoded(bytes: &[u8]) -> (usize, usize, Vec<Colour>) {
        let mut decoder = png::Decoder::new(std::io::Cursor::new(bytes));
        decoder.set_transformations(png::Transformations::EXPAND);
        let mut reader = decoder.read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut pixels).unwrap();
        (info.width as usize, info.height as usize, pixels.as_chunks().0.to_vec())
    }

    #[test]
    fn a_report_without_a_wrong_cell_has_no_picture() {
        assert_eq!(error_map(&Report::blank()), None);
    }

    #[test]
    fn a_wrong_cell_is_a_square_of_its_errors_colour_in_a_frame() {
        let (width, height, pixels) = decoded(&error_map(&report(8, &[(2, 5, 9.0)])).unwrap());
        assert_eq!((width, height), (8 * 64 + 2 * MARGIN, 8 * 64 + 2 * MARGIN));
        let centre = |row: usize, column: usize| pixels[(MARGIN + row * 64 + 31) * width + MARGIN + column * 64 + 31];
        assert_eq!(centre(2, 5), SHADES[7], "an error above the hottest cell");
        assert_eq!(centre(5, 2), PAPER[0], "rows run down and columns to the right");
        assert_eq!(pixels[(MARGIN + 2 * 64 - 2) * width + MARGIN + 5 * 64 + 31], PAPER[1], "the frame above it");
    }

    #[test]
    fn a_share_of_a_bin_is_a_smaller_square_and_nan_a_cross() {
        let bytes = error_map(&report(128, &[(2, 2, 1.5), (20, 20, f32::NAN)])).unwrap();
        let (width, _, pixels) = decoded(&bytes);
        let at = |row: usize, column: usize, x: usize, y: usize| {
            pixels[(MARGIN + row * 8 + y) * width + MARGIN + column * 8 + x]
        };
        assert_eq!(at(1, 1, 3, 3), SHADES[6]);
        assert_eq!(at(1, 1, 0, 0), PAPER[0], "one of four cells does not fill the bin");
        assert_eq!((at(10, 10, 0, 0), at(10, 10, 3, 0)), (PAPER[1], PAPER[0]));
    }

    #[test]
    fn the_same_report_gives_the_same_small_file() {
        let all: Vec<(usize, usize, f32)> = (0..100 * 100).map(|at| (at / 100, at % 100, 7.0)).collect();
        let report = report(100, &all);
        let bytes = error_map(&report).unwrap();
        assert_eq!(Some(&bytes), error_map(&report).as_ref());
        assert!(bytes.len() < 8_000, "{}", bytes.len());
    }

    #[test]
    fn frames_at_the_corners_stay_inside() {
        for cell in [(0, 0), (0, 63), (63, 0), (63, 63)] {
            assert!(error_map(&report(64, &[(cell.0, cell.1, 9.0)])).is_some());
        }
    }

    #[test]
    fn the_shades_darken_as_errors_grow() {
        let light = |[r, g, b]: Colour| 299 * u32::from(r) + 587 * u32::from(g) + 114 * u32::from(b);
        assert!(SHADES.windows(2).all(|pair| light(pair[0]) > light(pair[1])));
    }
}
