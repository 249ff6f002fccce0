//! The second stage of help where no cause is certain; a cause has its own in its page ([`crate::explain::hint`]).

use crate::verdict::CheckId;

/// Which way to go where no cause is certain. `unwritten`: the first wrong cell is one that no thread wrote.
pub fn of_check(id: CheckId, unwritten: bool) -> &'static str {
    match id {
        CheckId::Source => {
            "Hand in one program: a file heat.cu of plain text, by itself, alone in its folder, or in a .zip or .tar.gz that \
             opens."
        }
        CheckId::Compile => "Begin with the first message: any later ones often follow from it.",
        CheckId::Kernel => {
            "Write your kernel where the end of reference/heat.cu says, beside the shipped ones and with their parameters."
        }
        CheckId::Launch => {
            "Write the block and the grid as the lesson's launches do: from constants and from n, and a block of no more than \
             1024 threads."
        }
        CheckId::Values if unwritten => {
            "Take the first of these cells, and work out which block and thread it would be stored by. Then look for what \
             keeps that thread from it: the grid's size, an offset, or the guard of the store."
        }
        CheckId::Values => {
            "Take one wrong cell and compute it by hand: its five neighbours after the first timestep, each from its own five \
             before it. Then follow which of those values your kernel has at that place."
        }
        CheckId::Ring => "Guard the store by the cell's row and column, on both axes and against both ends.",
        CheckId::Memory => "Compute by hand, for the thread named above, each index on the line in question.",
        CheckId::Race => {
            "Go through your kernel from one use of shared memory to the next: between a store and a neighbour's load, and \
             between a load and the next store, every thread of the block has to wait once."
        }
        CheckId::Reads => "Let the input grid be read in one place only, and each cell of the apron there only once.",
        CheckId::Portable => {
            "Let every row and column be compared with n, also where a tile hangs over the grid's edge."
        }
        CheckId::Time | CheckId::Answer => "This check decides nothing.",
    }
}
