//! Warp operations: shuffles, votes and `__syncwarp` are one exchange of a value a lane among the lanes of a mask.

/// Behind the lanes' values: which lanes brought one, and what a lane gets that asks for nobody's (cuda_runtime.h).
const TOOK_PART: usize = 32;
const NOBODYS: usize = 33;

/// What a lane has that took no part. In each width a number format has it is no number, and as an integer an odd one.
const NO_VALUE: u64 = 0x7fff_7fff_7fff_7fff;

/// The values of an exchange.
type Values = [u64; 34];

/// An exchange under way among the lanes of one mask.
struct Group {
    mask: u32,
    arrived: u32,
    /// Whether one of them came with what orders no memory.
    unordered: bool,
    /// Moves on when the exchange completes.
    turn: u32,
    /// Two sets: a fast lane may bring its next value before a slow one has read this one.
    values: [Values; 2],
}

/// The exchanges of one warp. Groups are boxed: waiting threads hold pointers into them.
#[derive(Default)]
pub struct Warp {
    #[expect(clippy::vec_box, reason = "waiting threads point into the groups, which must not move")]
    groups: Vec<Box<Group>>,
    returned: u32,
    /// Lanes that ask who is with them, by where in the code they ask.
    asking: Vec<(usize, u32)>,
    /// How often each lane was answered, and its last answer.
    answers: [u32; 32],
    with: [u32; 32],
}

/// What a lane gets when it arrives.
pub struct Ticket {
    /// The lane waits until this counter leaves `value`.
    pub counter: *const u32,
    pub value: u32,
    /// The values of the exchange, complete once the wait is over.
    pub values: *const u64,
    /// Lanes whose memory this arrival ordered, because it completed the exchange; 0 when none.
    pub ordered: u32,
}

impl Warp {
    /// Forgets everything; a new block begins.
    pub fn reset(&mut self) {
        self.returned = 0;
        self.asking.clear();
        for group in &mut self.groups {
            (group.arrived, group.unordered) = (0, false);
        }
    }

    /// `lane` asks at `site` which lanes are with it (`__activemask`); it waits until the counter leaves the value.
    pub fn ask(&mut self, lane: usize, site: usize) -> (*const u32, u32) {
        match self.asking.iter_mut().find(|(other, _)| *other == site) {
            Some((_, lanes)) => *lanes |= 1 << lane,
            None => self.asking.push((site, 1 << lane)),
        }
        (&raw const self.answers[lane], self.answers[lane])
    }

    /// All other lanes wait elsewhere or have returned, so those that ask at one place are together; whether there are any.
    pub fn answer(&mut self) -> bool {
        let Some((_, together)) = self.asking.pop() else { return false };
        for lane in (0..32).filter(|lane| together >> lane & 1 == 1) {
            self.with[lane] = together;
            self.answers[lane] = self.answers[lane].wrapping_add(1);
        }
        true
    }

    /// The last answer to a lane.
    pub fn with(&self, lane: usize) -> u32 {
        self.with[lane]
    }

    /// `lane` brings `value` to the exchange among `mask`, which orders memory or does not.
    pub fn arrive(&mut self, lane: usize, mask: u32, value: u64, orders: bool) -> Ticket {
        let returned = self.returned;
        let group = self.group(mask);
        let set = group.turn as usize & 1;
        group.values[set][lane] = value;
        group.arrived |= 1 << lane;
        group.unordered |= !orders;
        let turn = group.turn;
        let ordered = group.finish_if_complete(returned);
        Ticket { counter: &raw const group.turn, value: turn, values: group.values[set].as_ptr(), ordered }
    }

    /// `lane` returned from the kernel: nobody waits for it any more. `ordered` gets the lanes whose memory that ordered.
    #[inline(always)]
    pub fn retire(&mut self, lane: usize, mut ordered: impl FnMut(u32)) {
        self.returned |= 1 << lane;
        for group in &mut self.groups {
            let lanes = group.finish_if_complete(self.returned);
            if lanes != 0 {
                ordered(lanes);
            }
        }
    }

    fn group(&mut self, mask: u32) -> &mut Group {
        let position = match self.groups.iter().position(|group| group.mask == mask) {
            Some(position) => position,
            None => {
                self.groups.push(Box::new(Group {
                    mask,
                    arrived: 0,
                    unordered: false,
                    turn: 0,
                    values: [[NO_VALUE; 34]; 2],
                }));
                self.groups.len() - 1
            }
        };
        &mut self.groups[position]
    }

    /// Whether `address` lies in the values of an exchange.
    pub fn holds(&self, address: usize) -> bool {
        self.groups.iter().any(|group| {
            let start = group.values.as_ptr() as usize;
            (start..start + size_of::<[Values; 2]>()).contains(&address)
        })
    }
}

impl Group {
    /// Ends the turn when all have come. Gives the lanes whose memory is ordered by that, 0 for none.
    fn finish_if_complete(&mut self, returned: u32) -> u32 {
        if self.arrived == 0 || self.mask & !returned & !self.arrived != 0 {
            return 0;
        }
        let values = &mut self.values[self.turn as usize & 1];
        for lane in (0..32).filter(|lane| self.arrived >> lane & 1 == 0) {
            values[lane] = NO_VALUE;
        }
        (values[TOOK_PART], values[NOBODYS]) = (u64::from(self.arrived), NO_VALUE);
        let ordered = if self.unordered { 0 } else { self.mask };
        (self.arrived, self.unordered) = (0, false);
        self.turn = self.turn.wrapping_add(1);
        ordered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(ticket: &Ticket) -> [u64; 34] {
        // SAFETY: the warp that the ticket is of lives on, and its groups do not move.
        unsafe { *ticket.values.cast() }
    }

    #[test]
    fn a_lane_that_takes_no_part_has_no_value() {
        let mut warp = Warp::default();
        warp.arrive(0, 0b101, 7, false);
        let ticket = warp.arrive(2, 0b101, 9, false);
        let values = values(&ticket);
        assert_eq!((values[0], values[1], values[2], values[NOBODYS]), (7, NO_VALUE, 9, NO_VALUE));
        assert_eq!(values[TOOK_PART], 0b101);
        assert!(f32::from_bits(NO_VALUE as u32).is_nan() && f64::from_bits(NO_VALUE).is_nan());
    }

    #[test]
    fn what_a_lane_brought_before_it_returned_is_no_value_of_a_later_exchange() {
        let mut warp = Warp::default();
        for turn in 0..2 {
            warp.arrive(0, 0b11, turn, false);
            warp.arrive(1, 0b11, turn, false);
        }
        warp.retire(1, |_| panic!("nothing was under way"));
        let ticket = warp.arrive(0, 0b11, 5, false);
        let values = values(&ticket);
        assert_eq!((values[0], values[1], values[TOOK_PART]), (5, NO_VALUE, 0b01));
    }

    #[test]
    fn only_what_orders_memory_joins_lanes() {
        let mut warp = Warp::default();
        warp.arrive(0, 0b11, 0, true);
        assert_eq!(warp.arrive(1, 0b11, 0, true).ordered, 0b11);
        warp.arrive(0, 0b11, 0, true);
        assert_eq!(warp.arrive(1, 0b11, 0, false).ordered, 0, "one of the two came with a shuffle");
        warp.arrive(0, 0b11, 0, true);
        assert_eq!(warp.arrive(1, 0b11, 0, true).ordered, 0b11, "that is forgotten");
    }

    #[test]
    fn lanes_are_joined_when_the_last_one_missing_returns() {
        let (mut warp, mut joined) = (Warp::default(), 0);
        warp.arrive(0, 0b111, 0, true);
        warp.arrive(1, 0b111, 0, true);
        warp.retire(2, |lanes| joined |= lanes);
        assert_eq!(joined, 0b111);
    }
}
