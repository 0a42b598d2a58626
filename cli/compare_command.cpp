// `attn compare`: it computes nothing and has flags of its own.
#include <limits>

#include "cli/commands.hpp"
#include "core/error.hpp"

namespace attn::cli {

using nlohmann::json;

CompareCommand::CompareCommand(CLI::App& program)
    : Command(program, "compare", "how far two results are apart, array by array"), own_(app_) {
    const std::string side =
        "a result, or an array in any format (FILE:NAME picks one); - is standard input";
    a_ = app_.add_option("A", side)->type_name(" ");
    b_ = app_.add_option("B", side)->type_name(" ");
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
                     "where they differ");
}

CommandLine CompareCommand::read() const {
    for (const std::string& word : app_.remaining())
        throw Error(ErrorKind::usage, word,
                    word.starts_with('-') ? "unknown flag; attn compare --help lists the known ones"
                                          : "a third input; expected two");
    if (a_->count() == 0 || b_->count() == 0)
        throw Error(ErrorKind::usage, "attn compare", "one input is missing; expected A and B");
    CompareRequest request;
    request.a = a_->results().front();
    request.b = b_->results().front();
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
