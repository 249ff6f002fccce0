//! Warp operations: shuffles, votes and `__syncwarp` are one exchange of a value a lane among the lanes of a mask.

/// An exchange under way among the lanes of one mask.
struct Group {
    mask: u32,
    arrived: u32,
    /// Moves on when the exchange completes.
    turn: u32,
    /// Two sets: a fast lane may bring its next value before a slow one has read this one.
    values: [[u64; 32]; 2],
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
    /// The 32 values of the exchange, complete once the wait is over.
    pub values: *const u64,
    /// Whether this arrival completed the exchange, and the lanes that took part.
    pub complete: bool,
    pub mask: u32,
}

impl Warp {
    /// Forgets everything; a new block begins.
    pub fn reset(&mut self) {
        self.returned = 0;
        self.asking.clear();
        for group in &mut self.groups {
            group.arrived = 0;
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

    /// `lane` brings `value` to the exchange among `mask` (itself always included).
    pub fn arrive(&mut self, lane: usize, mask: u32, value: u64, existing: u32) -> Ticket {
        let mask = (mask & existing) | 1 << lane;
        let returned = self.returned;
        let group = self.group(mask);
        let set = group.turn as usize & 1;
        group.values[set][lane] = value;
        group.arrived |= 1 << lane;
        let turn = group.turn;
        let complete = group.finish_if_complete(returned);
        Ticket { counter: &raw const group.turn, value: turn, values: group.values[set].as_ptr(), complete, mask }
    }

    /// `lane` returned from the kernel: nobody waits for it any more.
    #[inline(always)]
    pub fn retire(&mut self, lane: usize) {
        self.returned |= 1 << lane;
        for group in &mut self.groups {
            group.finish_if_complete(self.returned);
        }
    }

    fn group(&mut self, mask: u32) -> &mut Group {
        let position = match self.groups.iter().position(|group| group.mask == mask) {
            Some(position) => position,
            None => {
                self.groups.push(Box::new(Group { mask, arrived: 0, turn: 0, values: [[0; 32]; 2] }));
                self.groups.len() - 1
            }
        };
        &mut self.groups[position]
    }

    /// Whether `address` lies in the values of an exchange.
    pub fn holds(&self, address: usize) -> bool {
        self.groups.iter().any(|group| {
            let start = group.values.as_ptr() as usize;
            (start..start + size_of::<[[u64; 32]; 2]>()).contains(&address)
        })
    }
}

impl Group {
    fn finish_if_complete(&mut self, returned: u32) -> bool {
        if self.arrived == 0 || self.mask & !returned & !self.arrived != 0 {
            return false;
        }
        self.arrived = 0;
        self.turn = self.turn.wrapping_add(1);
        true
    }
}
