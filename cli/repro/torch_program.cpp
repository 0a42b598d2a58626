#include "cli/repro/python.hpp"

namespace attn::cli {
namespace {

constexpr PythonDialect torch_dialect{.library = "PyTorch",
                                      .module = "torch",
                                      .array = "tensor",
                                      .keep = "keepdim=True",
                                      .max = "amax",
                                      .swap = "transpose",
                                      .cat = "torch.cat",
                                      .repeat = "repeat_interleave",
                                      .copy = "clone",
                                      .type_before = ".to(",
                                      .bool_type = "torch.bool"};

/// PyTorch's own functions where they compute the same: linear, layer_norm, rms_norm, softmax and
/// scaled_dot_product_attention.
class TorchLanguage : public PythonLanguage {
public:
    explicit TorchLanguage(const Repro& program) : PythonLanguage(program, torch_dialect) {}

    void begin() override {
        header("import numpy as np\nimport torch\nimport torch.nn.functional as F");
    }

    void begin_steps() override {
        line("");
        line("def check(name, got, want, tolerance):");
        line("    got, want, tolerance = got.numpy(), want.numpy(), tolerance.numpy()");
        line(check_end);
    }

    /// Some backends of the operator take the root of the scale.
    bool has_operator() const override {
        return plan.scale > 0 && !p.is_linear() && plan.softcap == 0 && plan.sink.empty() &&
               !p.renormalizes() && !p.has("dropout_kept") && !p.has_masked_rows;
    }
    bool has_result(std::string_view array) const override {
        return array != "attention_weights" || !has_operator();
    }

    void attend() override {
        const std::string mask = mask_of_operator();
        std::string call = p.heads_name() +
                           " = F.scaled_dot_product_attention(\n    queries, keys, "
                           "values, " +
                           mask + "scale=" + python_number(plan.scale);
        if (p.group() != 1) call += ", enable_gqa=True";
        line(call + ")");
    }

protected:
    std::string loaded(const ProgramArray& array) const override {
        return "torch.from_numpy(" + PythonLanguage::loaded(array) + ")";
    }

    std::string normed(const std::string& x, const ProgramNorm& norm) override {
        const std::string shape = "(" + std::to_string(norm.norm.weight.size()) + ",)",
                          eps = python_number(norm.norm.eps), weight = norm.name + "_weight";
        if (norm.norm.is_rms)
            return "F.rms_norm(" + x + ", " + shape + ", " + weight + ", " + eps + ")";
        const std::string bias = norm.norm.bias.empty() ? "None" : norm.name + "_bias";
        return "F.layer_norm(" + x + ", " + shape + ", " + weight + ", " + bias + ", " + eps + ")";
    }

    std::string projected(const std::string& x, ArrayId weight, std::string_view bias) override {
        const std::string name(weight.row().name);
        if (p.find(name)->shape.size() == 3) return PythonLanguage::projected(x, weight, bias);
        const std::string w = p.is_in_out(weight) ? name + ".T" : name;
        return "F.linear(" + x + ", " + w + (p.has(bias) ? ", " + std::string(bias) : "") + ")";
    }

    std::string softmaxed(const std::string& x) override {
        if (!plan.sink.empty()) return exponentials_of(x);
        return "F.softmax(" + x + ", -1)" + (p.has_masked_rows ? ".nan_to_num(0)" : "");
    }

private:
    /// The mask of the operator's call, in its arguments; its steps are alibi, masks and rules.
    std::string mask_of_operator() {
        std::string sum = plan.alibi ? alibi_terms() : "";
        for (const std::string& mask : p.additive_masks) sum += (sum.empty() ? "" : " + ") + mask;
        if (sum.empty() && p.is_only_causal()) return "is_causal=True, ";
        if (!sum.empty()) line("attn_mask = " + sum);
        if (p.has_rules()) {
            const std::string allowed = rules();
            line("attn_mask = " +
                 (sum.empty() ? allowed : "torch.where(" + allowed + ", attn_mask, -math.inf)"));
        } else if (sum.empty()) {
            return "";
        }
        return "attn_mask=attn_mask, ";
    }
};

}  // namespace

std::string torch_program(const Repro& program) {
    TorchLanguage language(program);
    return written_by(language, program);
}

}  // namespace attn::cli
