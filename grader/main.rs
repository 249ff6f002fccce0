fn main() -> anyhow::Result<()> {
    heat_grader::execute::cpu::worker::main()
}
