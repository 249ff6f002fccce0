use super::*;

fn findings(host: State, nvcc: State) -> Vec<Finding> {
    vec![
        Finding::new(Subject::Nvcc, nvcc, "13.0.88 on PATH: /x/nvcc", ""),
        Finding::new(Subject::HostCompiler, host, "no g++ was found on PATH", "nothing can be compiled"),
    ]
}

#[test]
fn what_is_missing_decides_what_can_be_done() {
    let able = |host, nvcc| {
        let findings = findings(host, nvcc);
        (can_check(&findings), can_grade(&findings))
    };
    assert_eq!(able(State::Found, State::Found), (true, true));
    assert_eq!(able(State::Found, State::Degraded), (true, true));
    assert_eq!(able(State::Found, State::Missing), (true, false));
    assert_eq!(able(State::Missing, State::Found), (false, false));
    assert!(!can_check(&[]) && !can_grade(&[]));
}

#[test]
fn findings_are_plain_lines_with_their_effect_below() {
    assert_eq!(
        render(&findings(State::Missing, State::Found), false),
        "[ok]   nvcc             13.0.88 on PATH: /x/nvcc\n\
         [none] host compiler    no g++ was found on PATH\n                        nothing can be compiled\n\
         This machine can neither check nor grade.\n"
    );
    assert!(render(&findings(State::Found, State::Found), true).contains("\u{1b}[32m[ok]"));
}

#[test]
fn this_machine_is_described_without_a_panic_and_nothing_is_fetched() {
    let findings = examine(true);
    eprintln!("{}", render(&findings, false));
    assert_eq!(findings.len(), 10);
    assert!(findings.iter().all(|finding| !finding.detail.is_empty()));
    assert!(findings.iter().all(|finding| finding.state == State::Found || !finding.effect.is_empty()));
}
