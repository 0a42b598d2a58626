// Words of stored types, through the real binary: judged in every format, by batches, and in a
// folder. What the words are: low_precision_test.cpp and format_test.cpp.
#include <filesystem>

#include "tests/support/answers.hpp"

namespace words_test {
namespace {

using namespace attn::test;
using nlohmann::json;

const Words question = words_in("causal --example journey --d-out 2 --seed 123");

json checked(const Words& more, int code) {
    return answer(Words{"check"} + question + more + Words{"--format", "json"}, "", code);
}

/// The text with the last digit of the word after `before` changed by one.
std::string off_by_one(std::string text, const std::string& before, std::size_t words) {
    std::size_t at = text.find(before);
    for (std::size_t i = 0; i <= words; ++i) at = text.find('\n', at) + 1;
    char& digit = text[text.find('\n', at) - 1];
    digit =
        digit == '0' || digit == 'a' ? static_cast<char>(digit + 1) : static_cast<char>(digit - 1);
    return text;
}

TEST_CASE("words: what --store writes is right, and a word off by one is named with its address") {
    for (const std::string store :
         {"fixed:16,12", "fixed:12,5,TRN", "fixed:24,18,RND", "int8:0.05", "float16", "bfloat16"})
        for (const std::string file : {"g.memh", "g.h", "g/"}) {
            if (file == "g/" && store == "bfloat16") continue;
            CAPTURE(store);
            CAPTURE(file);
            std::filesystem::remove_all("g");
            output_of(question + Words{"--emit", "all", "--store", store, "-o", file});
            const json whole = checked({"--against", file}, 0);
            for (const json& array : whole["arrays"]) {
                CHECK(array["words"]["type"] == store);
                CHECK(array["words"]["differ"] == 0);
            }
            if (file != "g.memh") continue;
            write_text("off.memh", off_by_one(read_text(file), "// queries", 4));
            const json report = checked({"--against", "off.memh"}, 1);
            std::size_t wrong = 0;
            for (const json& array : report["arrays"]) {
                if (array["verdict"] != "wrong") continue;
                ++wrong;
                CHECK(array["name"] == "queries");
                CHECK(array["first"] == json({1, 1}));
                CHECK(array["words"]["address"] == 6 * 3 + 3 * 6 + 3);
                CHECK(array["wrong"]["count"] == 1);
            }
            CHECK(wrong == 1);
            checked({"--against", "off.memh", "--lsb", "1"}, 0);
            CHECK(contains(
                run_attn(Words{"check"} + question + Words{"--against", "off.memh", "--exact"}).out,
                "queries: wrong only in row 1, column 1: 1 of 12 elements"));
        }
}

TEST_CASE("words: integers of an npy file are those that --type says; tolerances are of numbers") {
    const Words of_queries{"--against", "q.npy", "--names", "queries"};
    output_of(question + words_in("--emit queries --store fixed:16,12,TRN -o q.npy"));
    checked(of_queries + Words{"--type", "fixed:16,12,TRN"}, 0);
    CHECK(checked(of_queries + Words{"--type", "fixed:16,12"}, 1)["arrays"][0]["words"]["differ"] >
          2);
    checked(of_queries + words_in("--type fixed:16,12 --lsb 1"), 0);
    checked(of_queries + words_in("--type fixed:16,12 --atol 2.5e-4"), 0);
    checked(of_queries + words_in("--type fixed:16,12 --atol 1e-5"), 1);
    checked(of_queries + words_in("--type fixed:16,11,TRN"), 1);
    checked(of_queries, 1);
}

TEST_CASE("words: a batch writes one file a record, and JUnit's XML has a case for each") {
    write_text(
        "q.ndjson",
        "{\"id\":\"a<&\\\"\",\"mode\":\"self\",\"inputs\":[[1,0.5],[0.25,-0.7]],\"d_out\":2}\n"
        "{\"id\":2,\"mode\":\"self\",\"inputs\":\"gone.csv\"}\n"
        "{\"id\":3,\"mode\":\"causal\",\"inputs\":[[2,-0.5],[1,3]],\"d_out\":2}\n");
    for (const std::string format : {"memh", "c", "npy"}) {
        CAPTURE(format);
        const Words batch{"batch", "q.ndjson", "--out-dir",       format,    "--format",
                          format,  "--emit",   "context_vectors", "--store", "fixed:16,12,RND"};
        CHECK(run_attn(batch).code == 1);
        const std::string index = read_text(format + "/index.ndjson");
        const json last = answers_in(index)[2]["arrays"][0];
        CHECK(last["store"] == "fixed:16,12,RND");
        CHECK(last["dtype"] == "int16");
        CHECK(run_attn(batch + Words{"--resume"}).code == 1);
        CHECK(read_text(format + "/index.ndjson") == index);
        const Words check{"check",   "q.ndjson", "--against", format + "/index.ndjson",
                          "--junit", "j.xml"};
        const std::vector<json> verdicts = answers_in(run_attn(check).out);
        REQUIRE(verdicts.size() == 3);
        CHECK(verdicts[0]["arrays"][0]["words"]["differ"] == 0);
        CHECK(verdicts[2]["verdict"] == "right within its type");
        const std::string xml = read_text("j.xml");
        CHECK(contains(
            xml, "<testsuite name=\"q.ndjson\" tests=\"3\" failures=\"0\" errors=\"1\" time="));
        CHECK(contains(xml, " name=\"a&lt;&amp;&quot;\" time="));
        CHECK(contains(xml, "<error message=\"" + format +
                                "/index.ndjson:2: a record that failed in its batch"));
    }
    std::filesystem::copy_file("memh/part-00001.memh", "memh/part-00000.memh",
                               std::filesystem::copy_options::overwrite_existing);
    run_attn({"check", "q.ndjson", "--against", "memh/index.ndjson", "--junit", "j.xml"});
    CHECK(contains(read_text("j.xml"),
                   "<failure message=\"wrong: first departs at context_vectors[0, 0]"));
}

TEST_CASE("folder: it is read wherever a result is, replaced as a whole, and never lost in part") {
    const Words write = question + words_in("--emit all -o gold/");
    output_of(write);
    output_of(question + words_in("--emit all -o gold.npz"));
    for (const std::string command :
         {"compare gold/ gold.npz", "compare gold:queries gold.npz:queries",
          "check gold --against gold.npz", "inspect gold", "plot gold -o gold.svg",
          "explain gold --token 2"})
        output_of(words_in(command));
    CHECK(output_of(words_in("causal --config gold/ -f json")) ==
          output_of(words_in("causal --config gold.npz -f json")));
    output_of(question + words_in("--emit queries -o gold"));
    CHECK(!std::filesystem::exists("gold/keys.npy"));
    write_text("gold/notes.txt", "mine");
    check_error(write, "", 4, "gold/notes.txt: is not part of a result");
    CHECK(std::filesystem::exists("gold/queries.npy"));
    check_error(question + words_in("--emit all --store fixed:8,4,WRAP -o new/"), "", 3,
                "is infinite");
    for (const auto& entry : std::filesystem::directory_iterator("."))
        CHECK(!entry.path().filename().string().starts_with(".attn-"));
    CHECK(!std::filesystem::exists("new"));
}

TEST_CASE("inputs: a range as uniform_ draws it, and the corners of a type") {
    const Words layer = words_in("self --init none --emit inputs --rand 2,3 --seed 123");
    const auto inputs = [&](const std::string& more) {
        return answer(layer + words_in(more))["inputs"];
    };
    // torch.manual_seed(123); torch.empty(2, 3).uniform_(-4, 4)
    CHECK(inputs("--uniform -4,4") ==
          json({{-1.6311045, 0.13249826, -1.9866343}, {1.5084543, -3.4082203, 2.9321756}}));
    CHECK(inputs("--corners alternating") == json({{1, -1, 1}, {-1, 1, -1}}));
    CHECK(inputs("--corners zeros") == json({{0, 0, 0}, {0, 0, 0}}));
    CHECK(inputs("--corners largest")[1][2] == 3.4028235e38);
    CHECK(inputs("--corners smallest --dtype float64")[1][2] == 5e-324);
    for (const std::string row : {"fixed:16,12 7fff 0001", "fixed:40,8,WRAP 7fffff8000 0000000001",
                                  "int8:0.05 7f 01", "float16 7bff 0001", "bfloat16 7f7f 0001"}) {
        const Words of = words_in(row), stored = words_in("--format memh --store " + of[0]);
        for (const auto& [corner, word] : {std::pair("largest", of[1]), {"smallest", of[2]}})
            CHECK(contains(output_of(layer + stored + Words{"--corners", corner}),
                           "\n" + word + "\n" + word + "\n"));
    }
}

}  // namespace
}  // namespace words_test
