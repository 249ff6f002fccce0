//! The second stage of help where no cause is certain; a cause has its own in its page ([`crate::explain::hint`]).

use crate::verdict::CheckId;

/// Which way to go where no cause is certain.
pub fn of_check(id: CheckId) -> &'static str {
    match id {
        CheckId::Source => "Put your program into a file called heat.cu, plain text, in a folder of its own.",
        CheckId::Compile => "Begin with the first message: any later ones often follow from it.",
        CheckId::Kernel => {
            "Write your kernel where the end of reference/heat.cu says, beside the shipped ones and with their parameters."
        }
        CheckId::Launch => "Write the block and the grid as the lesson's launches do: from constants and from n.",
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
