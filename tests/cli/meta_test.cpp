// "meta" of a request: any JSON value, given back as it is written.
#include "io/write/output_formats.hpp"
#include "tests/support/answers.hpp"

namespace meta_test {
namespace {

using namespace attn;
using namespace attn::test;

/// Texts without blanks between their tokens.
const Words values{"null",
                   "true",
                   "false",
                   "0",
                   "-0",
                   "1.0",
                   "1.50",
                   "-0.0e-0",
                   "1e400",
                   "-1E+999999",
                   "1e-999",
                   "1180591620717411303424",
                   "0.1000000000000000055511151231257827",
                   R"("")",
                   R"("a \"b\" \\ c")",
                   R"("\u00e9\ud83d\ude00\ud800\/\b")",
                   "\"\xc3\xa9 \xf0\x9f\x98\x80\"",
                   "[]",
                   "{}",
                   "[[]]",
                   R"([[1.0,2],[3,4]])",
                   R"({"id":1,"seed":2,"meta":3,"config":{"seed":"x"},"error":{}})",
                   R"({"a":1,"a":2})",
                   R"([1,"two",null,true,{"x":[1e400]}])",
                   R"({"schema":"attn.result/1"})",
                   R"({"context_vectors":[[1,2]]})"};

std::string request_with(const std::string& meta, const std::string& more = "") {
    return R"({"mode": "self", "id": 7, "inputs": [[1, 2], [3, 4]])" + more + R"(, "meta": )" +
           meta + "}";
}

/// The value with blanks wherever JSON allows them.
std::string spread(const std::string& text) {
    std::string out;
    bool quoted = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (quoted && text[i] == '\\') {
            (out += text[i]) += text[i + 1];
            ++i;
            continue;
        }
        if (text[i] == '"') quoted = !quoted;
        const bool is_mark = !quoted && std::string("[]{},:").find(text[i]) != std::string::npos;
        out += is_mark ? std::string(" \t") + text[i] + "\r\n " : std::string(1, text[i]);
    }
    return out;
}

TEST_CASE(
    "meta: every value is given back in every format with a head, and read by every command") {
    Sample sample(4);
    for (const std::string& value : values)
        for (const std::string& written : {value, spread(value)}) {
            CAPTURE(written);
            write_text("r.json", request_with(written));
            for (const io::OutputFormat& format : io::output_formats) {
                if (!format.has_head || format.is_folder) continue;
                const std::string name(format.name);
                for (const char* bare : {"--bare", "--no-bare"}) {
                    CAPTURE(name);
                    const Outcome outcome =
                        run_attn({"self", "r.json", "-f", name, bare, "-o", "out"});
                    CHECK(outcome.err == "");
                    std::string expected = R"("id":7,"meta":)" + value;
                    if (name == "safetensors") {  // JSON in a string
                        std::string escaped;
                        for (char c : expected) (escaped += c == '"' || c == '\\' ? "\\" : "") += c;
                        expected = escaped;
                    }
                    const std::string text = read_text("out");
                    if (name != "safetensors" || !contains(value, "\xc3"))
                        CHECK(contains(text, expected));
                }
            }
            REQUIRE(run_attn({"self", "r.json", "--pretty", "-o", "out"}).code == 0);
            CHECK(contains(read_text("out"), "\n  \"meta\": " + value + ",\n"));
            for (const std::string file : {"result.json", "result.npz", "result.safetensors"}) {
                if (!sample.takes()) continue;
                REQUIRE(run_attn({"self", "r.json", "--emit", "all", "-o", file}).code == 0);
                for (const Words& words : {Words{"explain", file},
                                           {"plot", file, "-o", "p.svg"},
                                           {"compare", file, file},
                                           {"inspect", file}})
                    CHECK(run_attn(words).code == 0);
                // The input of the next layer has the id and the meta of the first.
                const std::string next = run_attn({"causal", file}).out;
                if (file == "result.json")
                    CHECK(contains(next, R"("id":7,"meta":)" + value + ",\"mode\""));
            }
        }
}

TEST_CASE("meta: a batch gives each record its own, also where it fails") {
    for (const char* more : {"", R"(, "bare": true)", R"(, "d_out": 0)"}) {
        std::string lines;
        for (const std::string& value : values) lines += request_with(value, more) + "\n";
        const Words answers = lines_of(run_attn({"batch", "--jobs", "1"}, lines).out);
        REQUIRE(answers.size() == values.size());
        for (std::size_t i = 0; i < values.size(); ++i) {
            CAPTURE(answers[i]);
            CHECK(contains(answers[i], R"("id":7,"meta":)" + values[i] + ",\""));
        }
    }
}

TEST_CASE("meta: a resumed batch compares it, and an answer of --bare may have one") {
    const auto write_requests = [](const std::string& last) {
        write_text("r.ndjson",
                   R"({"id": 1, "mode": "self", "inputs": [[1, 2]], "meta": {"a": 1.0}})"
                   "\n"
                   R"({"id": 2, "mode": "self", "inputs": [[1, 2]], "meta": )" +
                       last + "}\n");
    };
    for (const Words& flags : std::vector<Words>{{}, {"--bare"}}) {
        write_requests("1.0");
        REQUIRE(run_attn(Words{"batch", "r.ndjson", "-o", "out.ndjson"} + flags).code == 0);
        const std::string whole = read_text("out.ndjson");
        const Words resume = Words{"batch", "r.ndjson", "--resume", "out.ndjson"} + flags;
        for (std::size_t length = 0; length <= whole.size(); length += 3 * one_in) {
            write_text("out.ndjson", whole.substr(0, length));
            CAPTURE(length);
            CHECK(run_attn(resume).code == 0);
            CHECK(read_text("out.ndjson") == whole);
        }
        write_requests("1.00");
        CHECK(run_attn(resume).code == 3);
        CHECK(read_text("out.ndjson") == whole);
    }
}

TEST_CASE("meta: invalid JSON is an error at its place, and is quoted only if it is text") {
    const Words wrong = lines_of(
        "tru\nnul\n01\n1.\n.5\n+1\n1e\n0x1\nNaN\nInfinity\n-\n[1,]\n{\"a\"}\n{\"a\":}\n{1:2}\n"
        "[1 2]\n[\"a\" \"b\"]\n\"\\x\"\n\"\\u12g4\"\n\"\x01\"\n[1,,2]\n{,}\n[}\n'a'\n1 2\n[01]\n"
        "[1.e5]\n[tru]\n{\"a\":1,}");
    for (const std::string& value : wrong) {
        CAPTURE(value);
        write_text("r.json", request_with(value));
        const Outcome outcome = run_attn({"self", "r.json"});
        CHECK(outcome.code == 3);
        CHECK(outcome.out == "");
        CHECK(outcome.err.starts_with("attn: error: r.json:1:"));
    }
    for (const std::string bytes : {"\xff", "\xc3", "\xed\xa0\x80", "\xf8\x88\x80\x80\x80"}) {
        const Outcome outcome = run_attn({"batch"}, request_with("{\"k\":\"" + bytes + "\"}"));
        CHECK(outcome.code != 0);
        const nlohmann::json answer = nlohmann::json::parse(outcome.out);
        CHECK(answer["id"] == 7);
        CHECK(answer.contains("error"));
        CHECK(!answer.contains("meta"));
    }
}

}  // namespace
}  // namespace meta_test
