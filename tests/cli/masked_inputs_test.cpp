// Tokens of a layer's input that a mask hides from every query may hold NaN and infinities.
#include "tests/support/answers.hpp"

namespace masked_inputs_test {

using namespace attn::test;
using nlohmann::json;

TEST_CASE("inputs: NaN in hidden tokens changes no other row, elsewhere it is an error") {
    constexpr std::size_t entries = 2, tokens = 5;
    const std::vector<std::size_t> valid{2, 4};  // what follows in an entry is padding
    const auto rows = [&](int seed) {
        return nested({entries, tokens, 4}, [&] { return (seed = seed * 7 % 31) / 16.0 - 1; });
    };
    const json x = rows(1), context = rows(5);
    std::size_t number = 0;
    for (const std::string mode : {"self", "causal", "multihead", "cross"})
        for (const std::string way :
             {"key_padding_mask", "mask", "kv_lengths", "additive key_padding_mask", "none"})
            for (const std::string source : {"inputs", "context"})
                for (const std::size_t token : {std::size_t{0}, std::size_t{3}}) {
                    if (source == "context" && mode != "cross") continue;
                    json request{{"inputs", x}};
                    if (mode == "cross") request["context"] = context;
                    if (mode == "multihead") request["heads"] = 2;
                    request["kernel"] = Words{"auto", "reference", "generic"}[++number % 3];
                    request["dtype"] = number % 2 == 0 ? "float32" : "float64";
                    const bool is_additive = way.starts_with("additive");
                    std::size_t cell = 0;
                    const auto keeps = [&]() -> json {
                        const bool keep = cell % tokens < valid[cell / tokens];
                        ++cell;
                        if (!is_additive) return keep;
                        return keep ? json(0) : json("-Infinity");
                    };
                    const json padding = nested({entries, tokens}, keeps);
                    if (way.ends_with("key_padding_mask")) request["key_padding_mask"] = padding;
                    if (way == "mask")
                        for (const json& row : padding)
                            request["mask"].push_back({std::vector<json>(tokens, row)});
                    if (way == "kv_lengths") request["kv_lengths"] = valid;
                    if (way == "mask" || way == "key_padding_mask") request["mask_true"] = "keep";
                    const json clean = request;
                    const bool is_nan = number % 4 < 2;
                    request[source][0][token][1] = is_nan ? "NaN" : "Infinity";
                    CAPTURE(mode);
                    CAPTURE(request.dump());
                    const Outcome outcome = run_attn({mode}, request.dump());
                    CAPTURE(outcome.err);
                    // In cross attention INPUT holds queries, which no mask of keys hides.
                    if (way == "none" || token < valid[0] ||
                        (mode == "cross" && source == "inputs")) {
                        CHECK(outcome.code == 3);
                        CHECK(contains(outcome.err, "finite"));
                        CHECK(outcome.out.empty());
                        continue;
                    }
                    REQUIRE(outcome.code == 0);
                    const json found = json::parse(outcome.out)["context_vectors"],
                               wanted = json::parse(
                                   run_attn({mode}, clean.dump()).out)["context_vectors"];
                    for (std::size_t b = 0; b < entries; ++b)
                        for (std::size_t q = 0; q < tokens; ++q) {
                            const bool is_own = mode != "cross" && b == 0 && q == token;
                            // Kernels do not fold the scale into queries where one is not finite.
                            for (std::size_t i = 0; i < wanted[b][q].size(); ++i)
                                if (!is_own)
                                    CHECK(found[b][q][i].get<double>() ==
                                          doctest::Approx(wanted[b][q][i].get<double>())
                                              .epsilon(1e-5));
                                else if (is_nan)
                                    CHECK(found[b][q][i] == "NaN");
                        }
                }
}

}  // namespace masked_inputs_test
