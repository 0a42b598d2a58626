// Which way a question is computed; see backend.hpp.
#include "core/plan/backend.hpp"

#include <algorithm>

#include "core/base/error.hpp"
#include "core/kernels/dispatch.hpp"

namespace attn {
namespace {

/// Multiplications up to which the reference is quick enough, about a millisecond.
constexpr double small_work = 0x1p20;

/// What only the reference can do of this question; empty: nothing.
std::string beyond_kernels(const Settings& s) {
    if (s.mask_method == MaskMethod::renormalize) return "has mask_method renormalize";
    for (const std::string& name : s.emit) {
        // Steps that fused kernels go through too fast to write them down.
        const auto array = find_array(name, all_arrays);
        if (array && array->row().from == From::reference) return "writes " + name;
    }
    return "";
}

double real(std::size_t size) {
    return static_cast<double>(size);
}

double attention_work(const Settings& s, const Geometry& g) {
    return real(g.batch) * real(g.heads) * real(g.rows(s)) * real(g.kv_len) *
           (real(g.d_k) + real(g.d_v));
}

double projection_work(const Settings& s, const Geometry& g) {
    if (!row_of(s.mode).projects || s.init == Init::none) return 0;
    const double query = real(g.q_len) * real(g.d_in) * real(g.heads * g.d_k);
    const double key_value =
        real(g.kv_len) * real(g.d_context) * real(g.kv_heads) * (real(g.d_k) + real(g.d_v));
    return real(g.batch) * (query + key_value);
}

}  // namespace

ChosenKernels choose_kernels(const Settings& s, const Geometry& g) {
    const kernels::Kernel* kernel = kernels::find(s.kernel);
    const std::string beyond = beyond_kernels(s);
    if (s.kernel != KernelChoice::automatic) {
        if (kernel != nullptr && !beyond.empty())
            throw SettingError(ErrorKind::usage, "kernel",
                               "no fused kernel " + beyond + "; expected auto or reference");
        return {kernel, kernel};
    }
    // One way for the whole question: half of each would have digits of neither.
    const bool large = projection_work(s, g) + attention_work(s, g) > small_work;
    return large && beyond.empty() ? ChosenKernels{kernel, kernel} : ChosenKernels{};
}

bool streams_weights(const Settings& s, const Geometry& g) {
    constexpr double large = 0x1p26;
    const double element = s.dtype == Dtype::float32 ? sizeof(float) : sizeof(double);
    const double bytes = element * real(g.batch) * real(g.heads) * real(g.rows(s)) * real(g.kv_len);
    const bool writes_mean = s.average_heads && std::find(s.emit.begin(), s.emit.end(),
                                                          "attention_weights") != s.emit.end();
    // Dropout head by head draws for several batch entries in another order than they are written.
    const bool drawn_apart = s.style == Style::wrapper && g.batch > 1;
    return bytes > large && !writes_mean && !drawn_apart;
}

}  // namespace attn
