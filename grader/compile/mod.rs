//! Effect 1: compilers. Yields every build that a grade needs, so that nothing loops back to it.
