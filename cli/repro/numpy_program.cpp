#include "cli/repro/python.hpp"

namespace attn::cli {
namespace {

constexpr PythonDialect numpy_dialect{.library = "NumPy",
                                      .module = "np",
                                      .array = "array",
                                      .keep = "keepdims=True",
                                      .max = "max",
                                      .swap = "swapaxes",
                                      .cat = "np.concatenate",
                                      .repeat = "repeat",
                                      .copy = "copy",
                                      .type_before = ".astype(",
                                      .bool_type = "bool"};

class NumpyLanguage : public PythonLanguage {
public:
    explicit NumpyLanguage(const Repro& program) : PythonLanguage(program, numpy_dialect) {}

    void begin() override { header("import math\nimport sys\n\nimport numpy as np"); }

    void begin_steps() override {
        line("");
        line("def check(name, got, want, tolerance):");
        line(check_end);
    }
};

}  // namespace

std::unique_ptr<Language> numpy_program(const Repro& program) {
    return std::make_unique<NumpyLanguage>(program);
}

}  // namespace attn::cli
