//! Pure reporting: a judged grade in, text or JSON out.
