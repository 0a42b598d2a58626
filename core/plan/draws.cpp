// Checks of what is drawn: the numbers of initialisers, the order, and what each generator can
// draw.
#include <set>

#include "core/plan/resolve.hpp"

namespace attn {
namespace {

void check_numbers(const Settings& s) {
    const auto at = [&](std::size_t i) { return s.init_numbers[i]; };
    for (const double number : s.init_numbers)
        if (overflows(number, s.dtype)) refuse("init", overflow_text(s.dtype));
    if (s.init_numbers.empty()) return;
    const bool is_xavier = s.init == Init::xavier_uniform || s.init == Init::xavier_normal;
    if (is_xavier && at(0) < 0) refuse("init", "a gain below 0; expected at least 0");
    if (s.init == Init::uniform && (at(0) > at(1) || overflows(at(1) - at(0), s.dtype)))
        refuse("init",
               "not an interval of --dtype; expected uniform,A,B with A of at most B, and B - A in "
               "its range");
    if (s.init == Init::normal && at(1) < 0)
        refuse("init", "a standard deviation below 0; expected at least 0");
    // A normal number is within 9 standard deviations, and xavier's bounds are at most 2 gains.
    if ((is_xavier && overflows(9 * at(0), s.dtype)) ||
        (s.init == Init::normal && overflows(std::abs(at(0)) + 9 * at(1), s.dtype)))
        refuse("init", "draws numbers beyond the range of --dtype; expected smaller ones");
    const auto is_integer = [](double x) { return std::trunc(x) == x && std::abs(x) <= 0x1p53; };
    if (s.init == Init::randint && !(is_integer(at(0)) && is_integer(at(1)) && at(0) < at(1)))
        refuse("init",
               "not a range of integers; expected randint,LOW,HIGH with integers LOW below HIGH, "
               "from -2^53 to 2^53");
    // With others torch.nn.init may draw for hours.
    if (s.init == Init::trunc_normal && !(std::abs(at(0)) <= trunc_normal_end && at(1) > 0))
        refuse("init",
               "expected a mean from -2 to 2, between which trunc_normal_ cuts, and a "
               "standard deviation above 0");
}

/// Refuses an order where nothing has one.
void refuse_order(const Settings& s, const char* message) {
    for (const auto& [key, is_given] :
         {std::pair("draw_order", !s.draw_order.empty()), {"qkv_joined", s.qkv_joined}})
        if (is_given) refuse(key, message);
}

void check_order(const Settings& s) {
    std::set<std::string_view> names;
    for (const std::string& name : s.draw_order)
        if (!names.insert(name).second) refuse("draw_order", name, " twice; expected it once");
    const bool has_out = names.erase("out") != 0;
    if (!s.draw_order.empty() && names != std::set<std::string_view>{"key", "query", "value"})
        refuse("draw_order",
               "not an order of the parameters; expected a list of query, key and value, and of "
               "out if it is drawn, as in key,query,value");
    if (has_out && !*s.out_proj)
        refuse("draw_order", "the layer has no output projection; expected an order without out");
    const bool is_within = has_out && s.draw_order.front() != "out" && s.draw_order.back() != "out";
    if (s.qkv_joined && is_within)
        refuse("draw_order",
               "--qkv-joined draws query, key and value at once; expected out "
               "before or after them");
    if (s.init == Init::mha)
        refuse_order(s,
                     "--init mha draws the output projection first, then the others joined; "
                     "expected no such flag");
}

void check_numpy(const Settings& s, bool draws_parameters) {
    if (s.rng != Rng::numpy) return;
    if (s.seed.negative || s.seed.bits > 0xffffffffu)
        refuse("seed",
               "np.random.seed takes 0 to 4294967295; expected one of them, or --rng torch");
    if (draws_parameters && !row_of(s.init).of_numpy)
        refuse("init", row_of(s.init).name,
               " is of PyTorch, not of NumPy; expected --init rand, randn, randint,LOW,HIGH, "
               "uniform,A,B or normal,MEAN,STD, or --rng torch");
    if (s.dropout != 0 && !s.dropout_seed)
        refuse("dropout",
               "PyTorch's dropout cannot continue NumPy's stream; expected --dropout-seed N, or "
               "--rng torch");
}

}  // namespace

void resolve_streams(Settings& s) {
    if (s.dropout_skip && s.continues_stream()) refuse("dropout_skip", "requires --dropout-seed");
    if (!s.continues_stream()) follow(s, s.dropout_skip, 0);

    const bool drops = s.dropout_stream == DropoutStream::cuda, draws = s.rng == Rng::cuda;
    if (!drops && s.dropout_kernel)
        refuse("dropout_kernel", "dropout is not drawn on a GPU; expected --dropout-stream cuda");
    for (const auto& [key, setting] :
         {std::pair("multiprocessors", &s.multiprocessors),
          {"threads_per_multiprocessor", &s.threads_per_multiprocessor}})
        if (*setting && !drops && !draws)
            refuse(key,
                   "nothing is drawn on a GPU; expected --device cuda, --rng cuda or "
                   "--dropout-stream cuda");
    // A kernel adds multiples of 4 to the generator's offset.
    for (const auto& [key, offset] : {std::pair("rng_skip", draws ? s.rng_skip : 0),
                                      {"dropout_skip", drops ? s.dropout_skip.value_or(0) : 0}})
        if (offset % 4 != 0)
            refuse(key, "not an offset of a GPU's generator; expected a multiple of 4");
    if (!drops && !draws) return;
    follow(s, s.multiprocessors, GpuThreads().multiprocessors);
    follow(s, s.threads_per_multiprocessor, GpuThreads().threads_per_multiprocessor);
}

void check_draws(const Plan& plan) {
    const Settings& s = plan.config;
    if (plan.draws_parameters()) {
        check_numbers(s);
        check_order(s);
    } else {
        refuse_order(s, "no parameter is drawn; expected no such flag");
    }
    check_numpy(s, plan.draws_parameters());
}

}  // namespace attn
