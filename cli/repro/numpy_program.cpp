#include "cli/repro/python.hpp"

namespace attn::cli {
namespace {

class NumpyLanguage : public PythonLanguage {
public:
    explicit NumpyLanguage(const Repro& program) : PythonLanguage(program, numpy_dialect) {}

    void begin() override { header("import numpy as np"); }

    void begin_steps() override {
        line("");
        line("def check(name, got, want, tolerance):");
        line(check_end);
    }
};

}  // namespace

std::string numpy_program(const Repro& program) {
    NumpyLanguage language(program);
    return written_by(language, program);
}

}  // namespace attn::cli
