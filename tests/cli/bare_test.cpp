// --bare: the same arrays as without it, and nothing else but the id.
#include "core/plan/settings.hpp"
#include "io/write/output_formats.hpp"
#include "tests/support/answers.hpp"

namespace bare_test {
namespace {

using namespace attn;
using namespace attn::test;
using Json = nlohmann::ordered_json;

/// One request per mode, with an id, labels, masks and arrays of several ranks.
std::vector<Json> requests() {
    const Json rows = Json::parse("[[0.4, 0.1], [0.5, 0.8], [0.2, 0.9]]");
    std::vector<Json> all;
    for (const ModeRow& mode : mode_rows) {
        Json request{{"id", "a b"}, {"tokens", {"x", "y", "z"}}};
        if (mode.source != Source::operands) {
            request.update({{"inputs", rows}, {"d_out", 2}, {"seed", 5}});
        } else {
            request.update({{"query", rows}, {"key", rows}, {"value", rows}});
        }
        if (mode.name == "cross") request["context"] = rows;
        request["mode"] = mode.name;
        all.push_back(request);
        request["emit"] = "all";
        if (mode.mechanism == Mechanism::softmax)
            request.update({{"mask", {{1, 0, 1}}}, {"mask_true", "keep"}});
        all.push_back(request);
        request.erase("id");
        request.update({{"token", 1}, {"emit", {"queries", "attention_weights"}}});
        if (mode.mechanism == Mechanism::softmax) request["emit"] = {"scores", "logsumexp"};
        all.push_back(request);
    }
    return all;
}

Words command(const Json& request, const Words& more) {
    return with({request["mode"].get<std::string>(), "r.json"}, more);
}

TEST_CASE("bare: every format with a head loses the head and keeps each array's bytes") {
    for (const Json& request : requests()) {
        CAPTURE(request.dump());
        write_text("r.json", request.dump());
        for (const io::OutputFormat& format : io::output_formats) {
            if (format.is_folder) continue;
            const std::string name(format.name), suffix(format.suffixes[0]);
            CAPTURE(name);
            const Words as{"--format", name, "-o", "bare" + suffix, "--bare"};
            const Outcome bare = run_attn(command(request, as));
            if (!format.has_head) {
                CHECK(bare.code == 2);
                CHECK(contains(bare.err, "--bare: requires --format json, ndjson"));
                continue;
            }
            REQUIRE(bare.code == 0);
            output_of(command(request, {"--format", name, "-o", "whole" + suffix}));
            const std::string text = read_text("bare" + suffix);
            for (const char* of_head : {"attn.result", "config", "shapes", "layout", "tokens\""})
                CHECK_FALSE(contains(text, of_head));
            CHECK((contains(text, "a b")) == request.contains("id"));
            if (format.json) {
                Json whole = Json::parse(read_text("whole" + suffix));
                for (const char* key : {"schema", "mode", "config", "shapes", "layout", "tokens"})
                    REQUIRE(whole.erase(key) == 1);
                whole.erase("asked");
                whole.erase("rng_consumed");
                CHECK(Json::parse(text) == whole);
            }
            // Text without a config does not show that its numbers are float32.
            const Words exactly{"--atol", "0", "--rtol", "0"};
            const Outcome same = run_attn(with({"compare", "whole" + suffix, "bare" + suffix},
                                               format.binary ? exactly : Words{"--rtol", "1e-6"}));
            CAPTURE(same.out + same.err);
            CHECK(same.code == 0);
        }
    }
}

}  // namespace
}  // namespace bare_test
