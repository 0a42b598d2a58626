// Turns a result into what is written; see report.hpp.
#include "cli/report.hpp"

#include <cctype>
#include <filesystem>
#include <utility>

#include "cli/options.hpp"
#include "core/error.hpp"
#include "io/output_file.hpp"
#include "io/writers.hpp"

namespace attn::cli {
namespace {

nlohmann::ordered_json shapes_json(const Shapes& s) {
    return {{"batch", s.batch}, {"heads", s.heads},   {"kv_heads", s.kv_heads},
            {"q_len", s.q_len}, {"kv_len", s.kv_len}, {"d_in", s.d_in},
            {"d_k", s.d_k},     {"d_v", s.d_v},       {"d_out", s.d_out}};
}

nlohmann::ordered_json head_of(const Request& request, const Shapes& shapes) {
    nlohmann::ordered_json head;
    head["schema"] = "attn.result/1";
    if (!request.id.is_null()) head["id"] = request.id;
    head["mode"] = name_of(mode_names, request.settings.mode);
    if (!request.tokens.empty()) head["tokens"] = request.tokens;
    head["config"] = config_of(request);
    head["shapes"] = shapes_json(shapes);
    return head;
}

/// A name that promises another format than the one that would be written.
void check_suffix(const Request& request) {
    std::string suffix = std::filesystem::path(request.output).extension();
    for (char& c : suffix) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    for (const char* known : {".npy", ".npz", ".safetensors", ".csv", ".ndjson"})
        if (suffix == known)
            throw Error(ErrorKind::unsupported, place_of(request, "output"),
                        suffix + " files cannot be written; expected json, torch or table");
}

/// Settings of JSON that another format would ignore.
void check_style(const Request& request) {
    if (request.format == io::Format::json) return;
    const char* ignored = request.pretty                               ? "pretty"
                          : request.nonfinite != io::Nonfinite::string ? "nonfinite"
                                                                       : nullptr;
    if (ignored != nullptr)
        throw Error(ErrorKind::usage, place_of(request, ignored),
                    "shapes JSON; expected format json beside it");
}

}  // namespace

bool takes_streams(const Request& request) {
    return request.format == io::Format::json;
}

void write_report(const Request& request, Result result, Workers& workers) {
    check_suffix(request);
    check_style(request);
    io::Report report;
    report.head = head_of(request, result.shapes);
    report.arrays = std::move(result.arrays);
    report.tokens = request.tokens;
    report.workers = &workers;
    report.first_query = request.settings.token.value_or(0);
    report.queries_are_tokens =
        request.settings.token || result.shapes.q_len == request.tokens.size();
    report.keys_are_tokens =
        request.settings.mode != Mode::cross && result.shapes.kv_len == request.tokens.size();
    io::NumberStyle style;
    if (request.precision) style.decimals = static_cast<int>(*request.precision);
    style.nonfinite = request.nonfinite;
    style.pretty = request.pretty;

    io::OutputFile out(request.output);
    io::writer_for(request.format)(out, report, style);
    out.commit();
}

}  // namespace attn::cli
