// `attn compare`: it computes nothing and has flags of its own.
#include <limits>

#include <nlohmann/json.hpp>

#include "cli/args/commands.hpp"
#include "core/base/error.hpp"

namespace attn::cli {

using nlohmann::json;

CompareCommand::CompareCommand(CLI::App& program)
    : Command(program, "compare", "how far two results are apart, array by array"), own_(app_) {
    own_.add("atol", "X", "absolute difference that counts as equal (default 0)");
    own_.add("rtol", "X", "the same relative to B, added to it (default 0)");
    own_.add("ulp", "N", "units in the last place that count as equal (default 0)");
    own_.add("dtype", "float32|float64", "type whose units are counted (default the results')");
    own_.add("format", "table|json", "for people or for programs (default table)");
    own_.add_switch("equal-nan", "NaN equals NaN (default off)");
}

std::string CompareCommand::help() const {
    app_.description("");
    return help_text(app_,
                     "  attn compare tokens.json tokens.csv --atol 1e-6 --ulp 4\n"
                     "  attn causal tokens.csv | attn compare - result.json --format json\n",
                     "attn compare: how far two results are apart, array by array; exit code 1 "
                     "where they differ",
                     "A B\n\nA and B are results of attn, or arrays in any format that it reads; "
                     "FILE:NAME picks one array;\n- is standard input.");
}

CommandLine CompareCommand::read() const {
    const std::vector<std::string> words = words_of(app_, {&own_.by_name()});
    if (words.size() > 2) throw Error(ErrorKind::usage, words[2], "a third input; expected two");
    if (words.size() < 2)
        throw Error(ErrorKind::usage, "attn compare", "one input is missing; expected A and B");
    CompareRequest request;
    request.a = words[0];
    request.b = words[1];
    request.tolerance.atol = tolerance("atol");
    request.tolerance.rtol = tolerance("rtol");
    request.tolerance.ulp =
        own_.whole("ulp", 0, std::numeric_limits<std::uint64_t>::max(), "a whole number from 0")
            .value_or(0);
    request.tolerance.equal_nan = own_.has("equal-nan");
    const std::optional<std::string> dtype = own_.text("dtype"), format = own_.text("format");
    if (dtype && dtype != "float32" && dtype != "float64") own_.fail("dtype", "float32|float64");
    if (format && format != "table" && format != "json") own_.fail("format", "table|json");
    if (dtype) request.dtype = dtype == "float64" ? Dtype::float64 : Dtype::float32;
    request.json = format == "json";
    CommandLine line;
    line.compare = request;
    return line;
}

double CompareCommand::tolerance(const char* flag) const {
    const json value = value_of(Kind::real, own_.text(flag).value_or("0"));
    if (!value.is_number() || !(value.get<double>() >= 0))
        own_.fail(flag, "a number of at least 0");
    return value.get<double>();
}

}  // namespace attn::cli
