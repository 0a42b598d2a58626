// Headers of C and words of $readmemh that attn wrote are inputs, with the numbers that were
// written; and comparisons in types of half precision.
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "io/file/bytes.hpp"
#include "tests/support/contains.hpp"
#include "tests/support/drawn_model.hpp"
#include "tests/support/run_attn.hpp"
#include "tests/support/sample.hpp"
#include "tests/support/support.hpp"
#include "tests/support/words.hpp"

namespace hardware_input_test {

using namespace attn::test;
using nlohmann::json;

namespace {

const std::vector<Words> questions{
    {"causal", "--example", "journey", "--emit", "inputs,W_query,queries,attention_weights"},
    words_in("multihead --example pair --heads 2 --d-out 4 --emit values,scores,context_vectors"),
    words_in("self --example journey --dtype float64 --emit keys,attention_weights")};

json compared(const Words& words, int code) {
    const Outcome outcome = run_attn(with(with({"compare"}, words), {"--format", "json"}));
    REQUIRE_MESSAGE(outcome.code == code, outcome.err);
    return json::parse(outcome.out);
}

}  // namespace

TEST_CASE("hardware input: arrays of headers and words are those that were written") {
    scratch_folder();
    for (const Words& question : questions) {
        CAPTURE(question[0]);
        REQUIRE_EQ(run_attn(with(question, {"-o", "g.npz"})).code, 0);
        for (const std::string file : {"g.h", "g.memh"}) {
            REQUIRE_EQ(run_attn(with(question, {"-o", file})).code, 0);
            const json same = compared({"g.npz", file}, 0);
            CHECK_GE(same["arrays"].size(), 2);
            for (const json& array : same["arrays"]) CHECK_EQ(array["outside"], 0);
        }
        for (const std::string type : {"float16", "bfloat16"}) {
            const std::string binary = type == "float16" ? "s.npz" : "s.safetensors";
            REQUIRE_EQ(run_attn(with(question, {"--store", type, "-o", binary})).code, 0);
            for (const std::string file : {"s.h", "s.memh"}) {
                REQUIRE_EQ(run_attn(with(question, {"--store", type, "-o", file})).code, 0);
                CHECK_EQ(compared({binary, file}, 0)["dtype"], type);
                // The numbers differ from those that were rounded by less than a unit.
                const json rounded = compared({"g.npz", file}, 1);
                CHECK_EQ(rounded["dtype"], type);
                for (const json& array : rounded["arrays"]) CHECK_EQ(array["max_ulp"], 0);
            }
        }
        for (const std::string type : {"int8:0.05", "fixed:16,8", "fixed:64,40", "fixed:5,2"}) {
            for (const std::string file : {"s.h", "s.memh"})
                REQUIRE_EQ(run_attn(with(question, {"--store", type, "-o", file})).code, 0);
            compared({"s.h", "s.memh"}, 0);
            compared({"s.h", "g.npz", "--atol", type == "fixed:64,40" ? "1e-12" : "30"}, 0);
        }
    }
}

TEST_CASE("hardware input: a truncated file, or one with a changed byte, is read or refused") {
    scratch_folder();
    Sample sample;
    for (const std::string file : {"g.h", "g.memh"}) {
        REQUIRE_EQ(run_attn(with(questions[0], {"--store", "fixed:12,4", "-o", file})).code, 0);
        const std::string whole = read_text(file);
        for (std::size_t i = 0; i < whole.size(); i += 1 + whole.size() / 75) {
            if (!sample.takes()) continue;
            write_text(file, whole.substr(0, i));
            const Outcome cut = run_attn({"inspect", file});
            CHECK((cut.code == 0 || cut.code == 3));
            std::string changed = whole;
            changed[i] = changed[i] == '7' ? '[' : '7';
            write_text(file, changed);
            const Outcome other = run_attn({"inspect", file});
            CHECK((other.code == 0 || other.code == 3));
            if (other.code == 3) CHECK(contains(other.err, file));
        }
    }
}

TEST_CASE("hardware input: each brace and comma of a header counts, and each name") {
    scratch_folder();
    REQUIRE_EQ(run_attn(words_in("multihead --example pair --heads 2 --d-out 4 --emit "
                                 "attention_weights,context_vectors,logsumexp -o g.h"))
                   .code,
               0);
    const std::string text = read_text("g.h");
    REQUIRE_EQ(run_attn({"inspect", "g.h"}).code, 0);
    std::size_t changes = 0;
    Sample is_taken(5);
    for (std::size_t at = text.find("static"); at != std::string::npos;
         at = text.find("static", at + 1)) {
        const std::size_t name = text.find(" ", text.find(" ", text.find(" ", at) + 1) + 1) + 1;
        std::vector<std::size_t> places{name};
        for (std::size_t mark = text.find("{", at); mark < text.find(";", at);
             mark = text.find_first_of("{},", mark + 1))
            places.push_back(mark);
        for (const std::size_t place : places) {
            std::string less = text, more = text;
            less.erase(place, 1);
            more.insert(place, 1, text[place]);
            for (const std::string& changed : {less, more}) {
                ++changes;
                if (!is_taken.takes()) continue;
                write_text("changed.h", changed);
                CAPTURE(changed.substr(at));
                const Outcome refused = run_attn({"inspect", "changed.h"});
                CHECK_EQ(refused.code, 3);
                CHECK(contains(refused.err, "changed.h:"));
            }
        }
    }
    CHECK_GE(changes, 100);
}

TEST_CASE("compare: units of half types count the numbers of that type") {
    scratch_folder();
    const auto write_half = [](const std::string& path, const std::string& type,
                               const std::vector<std::uint16_t>& bits) {
        std::string bytes;
        for (const std::uint16_t word : bits) bytes += attn::io::bytes_of_number(word, 2);
        write_text(path, safetensors_of({{"x", type, {bits.size()}, bytes}}));
    };
    for (const auto& [type, name] : {std::pair("F16", "float16"), {"BF16", "bfloat16"}})
        for (const std::uint16_t start :
             std::vector<std::uint16_t>{0x0001, 0x03ff, 0x3bff, 0x3c00, 0x7000})
            for (const std::uint16_t step : std::vector<std::uint16_t>{1, 2, 100}) {
                const auto next = static_cast<std::uint16_t>(start + step);
                const std::string dtype = name;
                write_half("a.safetensors", type, {start, 0x3c00});
                write_half("b.safetensors", type, {next, 0x3c00});
                const json found = compared({"a.safetensors", "b.safetensors"}, 1);
                CHECK_EQ(found["dtype"], dtype);
                CHECK_EQ(found["arrays"][0]["max_ulp"], step);
                compared({"a.safetensors", "b.safetensors", "--ulp", std::to_string(step)}, 0);
            }
}

TEST_CASE("compare: records of two batches are paired, and those that failed do not count") {
    scratch_folder();
    const auto line = [](const std::string& id, const std::string& inputs) {
        return R"({"id":")" + id + R"(","mode":"causal","d_out":2,"inputs":)" + inputs + "}\n";
    };
    write_text("a.ndjson",
               line("x", "[[1,2],[3,4]]") + line("y", "[[1,2],[3]]") + line("z", "[[1,2],[3,5]]"));
    write_text("b.ndjson",
               line("z", "[[1,2],[3,5]]") + line("y", "[[1],[3,1]]") + line("x", "[[1,2],[3,4]]"));
    write_text("c.ndjson", line("z", "[[1,2],[3,6]]") + line("y", "[[1,2],[3,3]]"));
    for (const std::string name : {"a", "b", "c"})
        run_attn({"batch", name + ".ndjson", "-o", name + "s.ndjson"});
    const Outcome same = run_attn({"compare", "as.ndjson", "bs.ndjson"});
    CHECK_EQ(same.code, 0);
    CHECK_EQ(same.out, "2 records equal, 1 record failed in both files\n");
    for (const std::string name : {"a", "b"})
        run_attn({"batch", name + ".ndjson", "--out-dir", name});
    for (const std::string first : {"a/index.ndjson", "as.ndjson"})
        CHECK_EQ(run_attn({"compare", first, "b/index.ndjson"}).out, same.out);
    const Outcome other = run_attn({"compare", "as.ndjson", "cs.ndjson"});
    CHECK_EQ(other.code, 1);
    CHECK(contains(other.out, "x: record"));
    CHECK(contains(other.out, "a result and missing"));
    CHECK(contains(other.out, "failed and a result"));
    CHECK(contains(other.out, "z: context_vectors"));
    CHECK(contains(other.out, "0 records equal, 3 records different\n"));
    write_text("d.ndjson", line("x", "[[1,2],[3,4]]") + line("x", "[[1,2],[3,5]]"));
    run_attn({"batch", "d.ndjson", "-o", "ds.ndjson"});
    const Outcome by_position = run_attn({"compare", "ds.ndjson", "ds.ndjson"});
    CHECK(contains(by_position.err, "paired by position"));
    CHECK_EQ(by_position.out, "2 records equal\n");
    run_attn({"self", "--example", "journey", "-o", "one.npz"});
    CHECK_EQ(run_attn({"compare", "as.ndjson", "one.npz"}).code, 3);
    const json both = compared({"as.ndjson", "cs.ndjson"}, 1);
    CHECK_EQ(both["arrays"].size(), 4);
    CHECK_EQ(both["arrays"][0]["record"], "x");
}

}  // namespace hardware_input_test
