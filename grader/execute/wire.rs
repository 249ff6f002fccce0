//! Frames between the grader and its workers: a JSON header and a blob of raw bytes, both with their length in front.

use std::io::{Read, Write};

use anyhow::{Context, Result, bail, ensure};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::memory::room;

/// Most bytes of a header and of a blob; a worker that claims more is lying.
const MOST_HEADER: u32 = 16 << 20;
const MOST_BLOB: u64 = 1 << 30;

/// Writes one frame: u32 header length, u64 blob length (little-endian), header, blob.
pub fn write(to: &mut impl Write, header: &impl Serialize, blob: &[u8]) -> Result<()> {
    let header = serde_json::to_vec(header).context("cannot write a frame")?;
    let mut start = Vec::with_capacity(12 + header.len());
    start.extend((header.len() as u32).to_le_bytes());
    start.extend((blob.len() as u64).to_le_bytes());
    start.extend(header);
    to.write_all(&start)?;
    to.write_all(blob)?;
    to.flush()?;
    Ok(())
}

/// Reads one frame; `None` at the end of the stream.
pub fn read<T: DeserializeOwned>(from: &mut impl Read) -> Result<Option<(T, Vec<u8>)>> {
    let mut lengths = [0; 12];
    match from.read(&mut lengths[..1])? {
        0 => return Ok(None),
        _ => from.read_exact(&mut lengths[1..]).context("a frame was cut short")?,
    }
    let (header, blob) = lengths.split_at(4);
    let header = u32::from_le_bytes(header.try_into()?);
    let blob = u64::from_le_bytes(blob.try_into()?);
    if header > MOST_HEADER || blob > MOST_BLOB {
        bail!("a frame claims {header} and {blob} bytes");
    }
    let text = read_bytes(from, header.into())?;
    let bytes = read_bytes(from, blob)?;
    Ok(Some((serde_json::from_slice(&text).context("a frame is not what it should be")?, bytes)))
}

/// Exactly so many bytes, into memory that is not cleared first.
fn read_bytes(from: &mut impl Read, length: u64) -> Result<Vec<u8>> {
    let mut bytes = room(length as usize);
    from.take(length).read_to_end(&mut bytes).context("a frame was cut short")?;
    ensure!(bytes.len() as u64 == length, "a frame was cut short");
    Ok(bytes)
}

/// The bytes of cells, as they lie in memory.
pub fn bytes_of(cells: &[f32]) -> &[u8] {
    // SAFETY: f32 has no padding and every byte pattern of it is a valid u8.
    unsafe { std::slice::from_raw_parts(cells.as_ptr().cast(), size_of_val(cells)) }
}

/// Cells from bytes; a rest of fewer than four bytes is dropped.
pub fn cells_of(bytes: &[u8]) -> Vec<f32> {
    let count = bytes.len() / 4;
    let mut cells: Vec<f32> = room(count);
    // SAFETY: the allocation holds `count` floats, every bit pattern is one, and all of them are written.
    unsafe {
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), cells.as_mut_ptr().cast(), 4 * count);
        cells.set_len(count);
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_back_as_written_and_the_end_is_no_error() {
        let mut pipe = Vec::new();
        write(&mut pipe, &("launch", 3), bytes_of(&[1.5, f32::NAN])).unwrap();
        let mut reader = &pipe[..];
        let (header, blob): ((String, u32), _) = read(&mut reader).unwrap().unwrap();
        assert_eq!(header, ("launch".to_owned(), 3));
        assert_eq!(cells_of(&blob)[0], 1.5);
        assert!(read::<(String, u32)>(&mut reader).unwrap().is_none());
    }

    #[test]
    fn a_frame_that_claims_too_much_or_ends_early_is_an_error() {
        assert!(read::<()>(&mut &[0xff; 12][..]).is_err());
        assert!(read::<()>(&mut &[1, 0, 0][..]).is_err());
    }
}
