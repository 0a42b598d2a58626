// Reads files of statistics, which may have been changed since they were written.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <optional>

#include <nlohmann/json.hpp>

#include "cli/question/question.hpp"
#include "cli/request/digest.hpp"
#include "cli/request/request.hpp"
#include "cli/scan/stats.hpp"
#include "core/base/error.hpp"
#include "core/scan/head_statistics.hpp"
#include "io/file/output.hpp"
#include "io/file/source.hpp"
#include "io/read/json_document.hpp"
#include "io/read/result_view.hpp"
#include "io/text/json_text.hpp"

namespace attn::cli {

namespace {

using nlohmann::json;

/// What is wrong with a file, beyond what its values throw.
struct WrongStats {
    std::string what;
};

void require_stats(bool is_right, const char* what) {
    if (!is_right) throw WrongStats{what};
}

/// All members. Those of sums are read one by one, since a value has a limit.
json values_of(const io::JsonDocument& document, const io::Source& source) {
    json values = json::object();
    for (const io::JsonMember& member : document.members())
        values[member.key] = member.key == "sums" && document.holds_object(member)
                                 ? io::JsonDocument(source, member).read_values()
                                 : document.read_value(member);
    return values;
}

std::vector<std::size_t> statistics_in(const json& names) {
    const auto all = head_statistics();
    std::vector<std::size_t> indices;
    for (const auto& name : names.get<std::vector<std::string>>()) {
        const auto row = std::ranges::find(all, name, &HeadStatistic::name);
        if (row == all.end()) throw WrongStats{"unknown statistic " + io::shortened(name)};
        indices.push_back(static_cast<std::size_t>(row - all.begin()));
        require_stats(indices.size() == 1 || indices[indices.size() - 2] < indices.back(),
                      "the statistics are not in order");
    }
    return indices;
}

FailedRecords failed_in(const json& failed) {
    FailedRecords read;
    for (const json& record : failed.at("first"))
        read.add({record.at("record"), io::json_text(record.at("id")), record.at("where"),
                  record.at("message")});
    read.count = failed.at("count");
    require_stats(
        read.first.size() == std::min<std::uint64_t>(read.count, FailedRecords::max_listed),
        "the count of failed records is wrong");
    return read;
}

std::int64_t fixed_in(const json& number) {
    if (number.is_null()) return 0;
    const auto real = number.get<double>();
    require_stats(std::abs(real) < value_limit, "an extreme is out of range");
    return to_fixed(real);
}

/// What holds for the sums of any values, so that mean and variance are within their range.
bool is_possible(const FixedSums& sums) {
    const auto count = static_cast<Int128>(sums.count);
    const std::int64_t largest = std::max(std::abs(sums.least), std::abs(sums.most));
    if (sums.least > sums.most || sums.sum < count * sums.least || sums.sum > count * sums.most ||
        sums.squares < 0)
        return false;
    // From here on the mean is at most the largest magnitude, below 2^48.
    const Int128 mean = count == 0 ? 0 : sums.sum / count;
    Int128 fewest = 0, most = 0;
    return multiply(mean * mean, count, fewest) && fewest <= sums.squares &&
           (!multiply(Int128{largest} * largest, count, most) || sums.squares <= most) &&
           std::accumulate(sums.bins.begin(), sums.bins.end(), std::uint64_t{0}) == sums.count;
}

/// The sums of one statistic of a head, from the values of the document by layer and head.
FixedSums sums_in(const json& values, std::size_t layer, std::size_t head) {
    const auto at = [&](const char* key) -> const json& {
        return values.at(key).at(layer).at(head);
    };
    FixedSums sums;
    sums.count = at("count");
    const bool are_numbers =
        read_decimal_of(at("sum").get_ref<const std::string&>(), sums.sum) &&
        read_decimal_of(at("squares").get_ref<const std::string&>(), sums.squares);
    require_stats(are_numbers, "a sum is not an integer in quotes");
    sums.least = fixed_in(at("least"));
    sums.most = fixed_in(at("most"));
    sums.bins = at("histogram");
    require_stats(is_possible(sums), "a sum is not one of values from least to most");
    return sums;
}

TextSums sums_of(const json& document, const std::vector<std::size_t>& statistics) {
    TextSums sums;
    std::size_t number = 0;
    for (const json& row : document.at("layers")) {
        const LayerKey key(row.value("part", ""), row.at("layer"));
        LayerSums& layer = sums.layers[key];
        layer.heads = row.at("heads");
        for (std::size_t head = 0; head < layer.heads; ++head)
            for (const std::size_t statistic : statistics)
                layer.sums.push_back(sums_in(
                    document.at(std::string(head_statistics()[statistic].name)), number, head));
        ++number;
    }
    return sums;
}

ScanStats stats_in(const io::InputFile& file) {
    require_stats(file.holds_object() && io::schema_of(file) == schemas::stats,
                  "no statistics of attn scan");
    const json values = values_of(*file.document, *file.source);
    const json &corpus = values.at("corpus"), &shards = corpus.at("shards");
    ScanStats stats;
    stats.statistics = statistics_in(values.at("config").at("stats"));
    stats.config = file.document->copied(*file.document->find("config"));
    const std::uint64_t of = shards.at("of");
    stats.shards = {of, shards.at("held")};
    const auto& held = stats.shards.held;
    require_stats(of <= HeldShards::most && !held.empty() && held.front() >= 1 &&
                      held.back() <= of &&
                      std::ranges::adjacent_find(held, std::greater_equal<>()) == held.end(),
                  "held is not a list of shards");
    stats.is_complete = corpus.at("complete");
    stats.records = corpus.at("records");
    require_stats(read_hex(corpus.at("digest").get<std::string>(), stats.digest),
                  "digest is not a digest");
    stats.failed = failed_in(corpus.at("failed"));
    stats.sums = sums_of(values.at("sums"), stats.statistics);
    stats.sums.tokens = corpus.at("tokens");
    stats.sums.truncated_texts = corpus.value("truncated_texts", std::uint64_t{0});
    require_stats(stats.sums.truncated_texts <= stats.records, "truncated_texts is above records");
    // Everything else, such as the order of lists and the means, as it would be written now.
    const std::string text = stats_text(stats);
    const io::Source again{"", text};
    require_stats(values.dump() == values_of(io::JsonDocument(again), again).dump(),
                  "not as attn scan writes it");
    return stats;
}

/// "skip_special true, and a.json has false": the first setting that differs.
std::string difference_of_configs(const io::InputFile& own, const io::InputFile& first) {
    const auto config = [](const io::InputFile& file) {
        return file.document->read_value(*file.document->find("config"));
    };
    const nlohmann::json a = config(own), b = config(first);
    for (const auto& [key, value] : b.items())
        if (!a.contains(key) || a[key] != value)
            return key + " " + io::shortened(a.contains(key) ? a[key].dump() : "missing") +
                   ", and " + first.location + " has " + io::shortened(value.dump());
    return "another config than " + first.location;
}

/// `first` is the file that the division of `all` is of.
void join_stats(ScanStats& all, const ScanStats& other, const std::string& location,
                const std::string& first) {
    if (other.shards.of != all.shards.of)
        throw Error(ErrorKind::input, location, "is of a corpus in ", other.shards.of,
                    " shards, and ", first, " of one in ", all.shards.of,
                    "; expected shards of one division");
    std::vector<std::uint64_t> held;
    std::merge(all.shards.held.begin(), all.shards.held.end(), other.shards.held.begin(),
               other.shards.held.end(), std::back_inserter(held));
    if (std::ranges::adjacent_find(held) != held.end())
        throw Error(ErrorKind::input, location,
                    "has records that a file before it has; expected each shard once");
    all.shards.held = std::move(held);
    if (__builtin_add_overflow(all.records, other.records, &all.records))
        throw Error(ErrorKind::input, location, "more than 2^64 records; expected fewer");
    all.digest += other.digest;
    all.failed.add(other.failed);
    all.sums.add(other.sums, all.statistics, location);
}

}  // namespace

ScanStats read_stats(const io::InputFile& file) {
    std::string what;
    try {
        return stats_in(file);
    } catch (const WrongStats& wrong) {
        what = wrong.what;
    } catch (const json::exception&) {
        what = "a member is missing or has another type";
    }
    throw Error(ErrorKind::input, file.location, what, "; expected a file as attn scan writes it");
}

void merge_stats(const std::vector<io::InputFile>& files, const Args& args) {
    const std::string output = args.text("output").value_or("-");
    if (output.empty()) args.fail("output");
    std::optional<ScanStats> all;
    for (const io::InputFile& file : files) {
        ScanStats stats = read_stats(file);
        if (!stats.is_complete)
            throw Error(ErrorKind::input, file.location,
                        "is of a scan that was interrupted; expected a complete one, as attn scan "
                        "--resume makes it");
        if (!all) {
            all = std::move(stats);
            continue;
        }
        if (stats.config != all->config)
            throw Error(ErrorKind::input, file.location, "has ",
                        difference_of_configs(file, files.front()), "; expected files of one scan");
        join_stats(*all, stats, file.location, files.front().location);
    }
    const std::size_t held = all->shards.held.size();
    const std::uint64_t of = all->shards.of;
    if (held == of) all->shards = {};
    io::write_file(output, [&](io::Output& to) { to << stats_text(*all); });
    if (held != of)
        show_notes({std::to_string(held) + " of " + std::to_string(of) +
                    " shards: attn merge joins the output with the others"});
}

}  // namespace attn::cli
