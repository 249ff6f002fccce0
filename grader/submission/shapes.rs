//! Shared arrays as they are declared: `__shared__ float tile[kRows][kColumns]`, so that a word of one can be named by its
//! row and column.

use super::interpreter::Interpreter;
use super::parser::Parser;
use super::program::Program;

/// Most dimensions that are read.
const DIMENSIONS: usize = 3;

/// A shared array whose lengths the text gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedShape {
    pub name: String,
    /// Outermost first, each at least 1.
    pub lengths: Vec<u32>,
}

/// The shared arrays of a text whose lengths are constants, each name once; one that is declared with several shapes is left
/// out, as nothing tells which of them an access means.
pub fn shared_shapes(program: &Program) -> Vec<SharedShape> {
    let text = &program.text;
    let mut shapes: Vec<SharedShape> = Vec::new();
    let mut torn: Vec<String> = Vec::new();
    for at in (0..text.tokens.len()).filter(|&at| text.is(at, "__shared__")) {
        for shape in declared(program, at + 1) {
            match shapes.iter().find(|known| known.name == shape.name) {
                Some(known) if known.lengths != shape.lengths => torn.push(shape.name),
                Some(_) => {}
                None => shapes.push(shape),
            }
        }
    }
    shapes.retain(|shape| !torn.contains(&shape.name));
    shapes
}

/// The arrays of one declaration, from the token after `__shared__` to its semicolon.
fn declared(program: &Program, mut at: usize) -> Vec<SharedShape> {
    let text = &program.text;
    let mut shapes = Vec::new();
    while at < text.tokens.len() && !text.is(at, ";") && !text.is(at, "{") && !text.is(at, "=") {
        let named = text.tokens.get(at).filter(|token| token.is_identifier() && text.is(at + 1, "["));
        let Some(named) = named else {
            at += 1;
            continue;
        };
        let (mut lengths, mut open) = (Vec::new(), at + 1);
        while text.is(open, "[") && text.partner(open) < text.tokens.len() {
            lengths.push(length(program, open));
            open = text.partner(open) + 1;
        }
        // The word after a name that has been read is never the same one.
        at = open.max(at + 1);
        let lengths: Option<Vec<u32>> = lengths.into_iter().collect();
        if let Some(lengths) = lengths.filter(|lengths| (1..=DIMENSIONS).contains(&lengths.len())) {
            shapes.push(SharedShape { name: named.text.to_string(), lengths });
        }
    }
    shapes
}

/// The constant in the brackets that open at a token.
fn length(program: &Program, open: usize) -> Option<u32> {
    let mut parser = Parser::new(&program.text, &program.names, open + 1, program.text.partner(open));
    let expression = parser.expression().filter(|_| parser.at == parser.end)?;
    let value = Interpreter::new(program).evaluate(&expression).as_integer()?;
    u32::try_from(value).ok().filter(|length| *length > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shapes(text: &str) -> Vec<(String, Vec<u32>)> {
        shared_shapes(&Program::new(text)).into_iter().map(|shape| (shape.name, shape.lengths)).collect()
    }

    #[test]
    fn lengths_are_worked_out_from_constants_and_macros() {
        let text = "constexpr int kTile = 32;\n#define HALO 2\n__global__ void k() {\n\
            __shared__ float tile[8 + 2 * HALO][kTile + 2 * HALO];\n__shared__ __align__(16) float a[340], b[10][34];\n}";
        let expected = [("tile", vec![12, 36]), ("a", vec![340]), ("b", vec![10, 34])];
        assert_eq!(shapes(text), expected.map(|(name, lengths)| (name.to_owned(), lengths)));
    }

    #[test]
    fn what_the_text_does_not_settle_is_left_out() {
        let text = "template <int X> __global__ void k() { __shared__ float t[X][4]; extern __shared__ float d[]; \
            __shared__ float one; }\n__global__ void l() { __shared__ float u[4]; }\n\
            __global__ void m() { __shared__ float u[5]; __shared__ float zero[0]; }";
        assert_eq!(shapes(text), []);
    }
}
