#include "cli/partial/partial.hpp"

#include <cstring>

#include "cli/output/output.hpp"
#include "cli/output/pictures.hpp"
#include "core/base/error.hpp"
#include "core/operator/merge.hpp"
#include "io/file/source.hpp"

namespace attn::cli {
namespace {

using nlohmann::ordered_json;

ordered_json question_in(const io::InputFile& file) {
    ordered_json question = ordered_json::object();
    for (const char* key : question_members)
        if (const nlohmann::json value = io::head_member(file, key); !value.is_null())
            question[key] = ordered_json(value);
    return question;
}

/// What was asked, as JSON, if all parts say the same.
std::string asked_in(const std::vector<io::InputFile>& files) {
    const nlohmann::json asked = io::head_member(files.front(), "asked");
    const bool is_same = std::ranges::all_of(
        files, [&](const io::InputFile& file) { return io::head_member(file, "asked") == asked; });
    return is_same && asked.is_object() ? asked.dump() : "";
}

/// Throws if `other` differs, at its first member that does.
void check_same_question(const ordered_json& one, const std::string& one_location,
                         const ordered_json& other, const std::string& location,
                         const std::string& name = "") {
    if (one.is_object() && other.is_object()) {
        ordered_json keys = one;
        keys.update(other);
        for (const auto& [key, value] : keys.items())
            check_same_question(one.value(key, ordered_json()), one_location,
                                other.value(key, ordered_json()), location,
                                name.empty() ? key : name + "." + key);
        return;
    }
    if (one == other) return;
    const auto shown = [](const ordered_json& value) {
        return value.is_null() ? std::string("missing") : io::shortened(value.dump());
    };
    throw Error(ErrorKind::input, location,
                name == "digest"
                    ? "is of other inputs than " + one_location + "; expected parts of one question"
                    : name + " is " + shown(other) + ", and in " + one_location + " " + shown(one) +
                          "; expected parts of one question");
}

struct JoinedKeys {
    KeyRanges ranges, missing;
};

/// The keys of all parts, and those before `keys` that none has. Throws if a key is in two of them.
JoinedKeys keys_of_all(const std::vector<PartFile>& parts, std::size_t keys) {
    std::vector<std::pair<KeyRange, const PartFile*>> owned;
    for (const PartFile& part : parts)
        for (const KeyRange& range : part.ranges) owned.emplace_back(range, &part);
    std::ranges::stable_sort(owned, {}, [](const auto& own) { return own.first.first; });
    JoinedKeys joined;
    std::size_t end = 0;
    for (std::size_t i = 0; i < owned.size(); ++i) {
        const auto& [range, part] = owned[i];
        if (range.first < end)
            throw Error(ErrorKind::input, part->location, "has the keys ", text_of_ranges({range}),
                        ", and ", owned[i - 1].second->location, " ",
                        text_of_ranges({owned[i - 1].first}), "; expected each key in one part");
        if (range.first > end) joined.missing.push_back({end, range.first});
        if (range.first == end && i != 0)
            joined.ranges.back().end = range.end;
        else
            joined.ranges.push_back(range);
        end = range.end;
    }
    if (end < keys) joined.missing.push_back({end, keys});
    return joined;
}

bool same_numbers(const RealArray& one, const RealArray& other) {
    if (one.dimension() == 0) return true;  // the plan's layer has none
    const Array<double>& a = one.in<double>();
    return std::memcmp(a.data(), other.in<double>().data(), a.size() * sizeof(double)) == 0;
}

/// Throws unless every part has the projection of the first.
void check_projections(const std::vector<PartFile>& parts) {
    const KeyPart& first = parts[0].part;
    for (const PartFile& other : parts)
        for (const auto& [name, equal] :
             {std::pair("W_out", same_numbers(first.out_weight, other.part.out_weight)),
              {"b_out", same_numbers(first.out_bias, other.part.out_bias)}})
            if (!equal)
                throw Error(ErrorKind::input, other.location, name, " is not that of ",
                            parts[0].location, "; expected parts of one question");
}

/// The rows of all parts, in the order of their first keys, so that the order of the files does
/// not change a byte.
MergedRows join_parts(std::vector<PartFile>& parts, const Plan& plan) {
    std::vector<PartFile*> ordered;
    ordered.reserve(parts.size());
    for (PartFile& part : parts) ordered.push_back(&part);
    std::ranges::sort(ordered, {}, [](const PartFile* part) { return part->ranges.front().first; });
    MergedRows rows(plan.batch * plan.heads * plan.rows, plan.d_v);
    for (PartFile* const part : ordered) {
        const Array<double> context = part->part.context.take<double>();
        for (std::size_t row = 0; row < part->part.logsumexp.size(); ++row)
            rows.add(row, context.data() + row * plan.d_v, part->part.logsumexp.data()[row]);
    }
    return rows;
}

/// The joined rows, with the output projection of one of the parts. `has_all`: of all keys.
KeyPart part_of_rows(const MergedRows& rows, bool has_all, const Plan& plan, KeyPart projection) {
    Array<double> context =
        Array<double>::from_shape({plan.batch, plan.heads, plan.rows, plan.d_v});
    for (std::size_t row = 0; row < projection.logsumexp.size(); ++row) {
        const RowSum sum = rows.finish(row, context.data() + row * plan.d_v);
        projection.logsumexp.data()[row] = has_all ? sum.logsumexp() : sum.logsumexp_of_part();
    }
    projection.context = std::move(context);
    return projection;
}

}  // namespace

void merge_parts(const std::vector<io::InputFile>& files, const Args& args) {
    ThreadPool pool;
    Request flags;
    flags.output = args.text("output").value_or("-");
    if (args.has("output")) flags.locations["output"] = Location("--output " + flags.output);
    const io::InputFile& first = files.front();
    PlannedResult planned = plan_of_result(io::ResultHead(first), std::move(flags));
    Request request = std::move(planned.request);
    const Plan plan = std::move(planned.plan);

    std::vector<PartFile> parts;
    ordered_json question = question_in(first);
    for (const io::InputFile& file : files) {
        check_same_question(question, first.location, question_in(file), file.location);
        parts.push_back({file.location, read_ranges(file, plan), {}, {}});
    }
    const auto [ranges, missing] = keys_of_all(parts, plan.kv_len);
    for (std::size_t i = 0; i < files.size(); ++i)
        parts[i].part = read_part_arrays(files[i], plan, pool);
    check_projections(parts);
    MergedRows rows = join_parts(parts, plan);

    if (missing.empty()) {
        rows.add_sinks(plan.config.sinks(), plan.config.dtype, plan.heads, plan.rows);
        plan_output(request);
        request.settings = plan.config;
        request.asked = asked_in(files);
        Result result =
            result_of_rows(plan, part_of_rows(rows, true, plan, std::move(parts[0].part)), pool);
        show_notes(
            write_outputs({{std::move(request), {}, {}}, plan, std::move(result), {}}, pool));
        return;
    }
    const std::string missed = "keys " + text_of_ranges(missing) + " are missing";
    if (const io::OutputFormat* const format = format_of_suffix(io::output_formats, request.output);
        format != nullptr && !format->holds_weights)
        throw Error(ErrorKind::usage, "--output " + request.output, missed,
                    ", and the format holds no part; expected parts of all keys, or "
                    ".npz, .safetensors or .json");
    if (const std::string asked = asked_in(files); !asked.empty())
        question["asked"] = ordered_json::parse(asked);
    write_part(request.output,
               {"", ranges, question, part_of_rows(rows, false, plan, std::move(parts[0].part))},
               pool);
    show_notes({missed + ": the output is another part, for attn merge"});
}

}  // namespace attn::cli
