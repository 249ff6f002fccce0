//! A logarithmic axis, and values sorted into its bins.

/// Ticks that an axis may show.
const TICKS: [f64; 13] = [0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0];
/// Bins for each doubling.
const BINS_A_DOUBLING: f64 = 4.0;
/// How far an axis reaches from its pivot, in doublings below and above; what lies beyond is drawn at its end.
const REACH: (f64, f64) = (4.0, 5.0);

/// From values to pixels, by their logarithm. Its bins' edges are `pivot * 2^(k/4)`, so no bin straddles the pivot.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    pivot: f64,
    /// Edges of the first and last bin, in bins from the pivot.
    bins: (f64, f64),
    /// Pixels of those edges.
    pixels: (f64, f64),
}

impl Scale {
    /// An axis over all `values` between two pixels. The pivot is positive.
    pub fn over(values: impl Iterator<Item = f64>, pivot: f64, pixels: (f64, f64)) -> Self {
        let place = |value: f64| (value / pivot).log2().clamp(-REACH.0, REACH.1) * BINS_A_DOUBLING;
        let places: Vec<f64> = values.filter(|value| *value > 0.0).map(place).chain([0.0]).collect();
        let low = places.iter().copied().fold(0.0, f64::min).floor() - 1.0;
        let high = places.iter().copied().fold(0.0, f64::max).floor() + 2.0;
        Self { pivot, bins: (low, high), pixels }
    }

    /// The pixel of a value; the axis's end when it lies beyond.
    pub fn at(&self, value: f64) -> f64 {
        let place = if value > 0.0 { (value / self.pivot).log2() * BINS_A_DOUBLING } else { f64::NEG_INFINITY };
        self.pixel(place)
    }

    fn pixel(&self, place: f64) -> f64 {
        let (low, high) = self.bins;
        let share = (place.clamp(low, high) - low) / (high - low);
        self.pixels.0 + share * (self.pixels.1 - self.pixels.0)
    }

    /// Round values within the axis whose labels have room, `apart` pixels from one another.
    pub fn ticks(&self, apart: f64) -> Vec<f64> {
        let inside = |tick: &f64| {
            let place = (tick / self.pivot).log2() * BINS_A_DOUBLING;
            self.bins.0 <= place && place <= self.bins.1
        };
        // The coarser ones claim their room first.
        let coarse = |tick: &f64| !matches!(*tick, 1.0 | 0.1 | 10.0);
        let mut wanted: Vec<f64> = TICKS.into_iter().filter(inside).collect();
        wanted.sort_by_key(coarse);
        let mut ticks: Vec<f64> = Vec::new();
        for tick in wanted {
            if ticks.iter().all(|other| (self.at(*other) - self.at(tick)).abs() >= apart) {
                ticks.push(tick);
            }
        }
        ticks.sort_by(f64::total_cmp);
        ticks
    }

    /// The bins, lowest first, with how many of the values each holds.
    pub fn bins(&self, values: &[f64]) -> Vec<Bin> {
        let (low, high) = self.bins;
        let edge = |place: f64| self.pivot * (place / BINS_A_DOUBLING).exp2();
        let mut bins: Vec<Bin> = (0..(high - low) as usize)
            .map(|at| {
                let place = low + at as f64;
                Bin {
                    from: edge(place),
                    to: edge(place + 1.0),
                    pixels: (self.pixel(place), self.pixel(place + 1.0)),
                    above_pivot: place >= 0.0,
                    count: 0,
                }
            })
            .collect();
        let last = bins.len() - 1;
        for value in values {
            // A value on the pivot is within it: a budget is kept by reading exactly as much.
            let at = bins.iter().position(|bin| *value < bin.to || (!bin.above_pivot && *value <= bin.to));
            bins[at.unwrap_or(last)].count += 1;
        }
        bins
    }
}

/// One bin of a histogram.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bin {
    pub from: f64,
    pub to: f64,
    pub pixels: (f64, f64),
    /// Whether the bin lies above the pivot.
    pub above_pivot: bool,
    pub count: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_in_a_bin_and_the_pivot_parts_them() {
        let values = [0.1, 0.84283, 1.3, 1.5, 1.5000001, 5.0, 12.5, 1e9];
        let bins = Scale::over(values.into_iter(), 1.5, (0.0, 100.0)).bins(&values);
        assert_eq!(bins.iter().map(|bin| bin.count).sum::<usize>(), values.len());
        let within: usize = bins.iter().filter(|bin| !bin.above_pivot).map(|bin| bin.count).sum();
        assert_eq!(within, 4, "a value on the budget is within it");
    }

    #[test]
    fn the_axis_holds_its_values_and_clamps_the_rest() {
        let scale = Scale::over([0.5, 3.0].into_iter(), 1.0, (10.0, 90.0));
        assert!(10.0 < scale.at(0.5) && scale.at(0.5) < scale.at(1.0) && scale.at(3.0) < 90.0);
        assert_eq!((scale.at(0.0), scale.at(-1.0), scale.at(1e9)), (10.0, 10.0, 90.0));
        assert!(Scale::over(std::iter::empty(), 1.0, (0.0, 1.0)).at(1.0) > 0.0);
    }

    #[test]
    fn ticks_keep_their_distance() {
        let scale = Scale::over([0.05, 40.0].into_iter(), 1.0, (0.0, 300.0));
        let ticks = scale.ticks(30.0);
        assert!(ticks.contains(&1.0) && ticks.len() > 3, "{ticks:?}");
        assert!(ticks.windows(2).all(|pair| scale.at(pair[1]) - scale.at(pair[0]) >= 30.0));
    }
}
