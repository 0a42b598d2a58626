#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "cli/question/question.hpp"
#include "cli/scan/stats.hpp"
#include "core/base/error.hpp"
#include "io/file/output_file.hpp"
#include "io/file/source.hpp"
#include "io/read/json_document.hpp"

namespace attn::cli {
namespace {

/// "skip_special true, and a.json has false": the first setting that differs.
std::string difference_of_configs(const io::InputFile& own, const io::InputFile& first) {
    const auto config = [](const io::InputFile& file) {
        return file.document->read_value(*file.document->find("config"));
    };
    const nlohmann::json a = config(own), b = config(first);
    for (const auto& [key, value] : b.items())
        if (!a.contains(key) || a[key] != value)
            return key + " " + io::shortened(a.contains(key) ? a[key].dump() : "missing") +
                   ", and " + first.place + " has " + io::shortened(value.dump());
    return "another config than " + first.place;
}

/// `first` is the file that the division of `all` is of.
void join_stats(ScanStats& all, const ScanStats& other, const std::string& place,
                const std::string& first) {
    if (other.shards.of != all.shards.of)
        throw Error(ErrorKind::input, place,
                    "is of a corpus in " + std::to_string(other.shards.of) + " shards, and " +
                        first + " of one in " + std::to_string(all.shards.of) +
                        "; expected shards of one division");
    std::vector<std::uint64_t> held;
    std::merge(all.shards.held.begin(), all.shards.held.end(), other.shards.held.begin(),
               other.shards.held.end(), std::back_inserter(held));
    if (std::adjacent_find(held.begin(), held.end()) != held.end())
        throw Error(ErrorKind::input, place,
                    "has records that a file before it has; expected each shard once");
    all.shards.held = std::move(held);
    if (__builtin_add_overflow(all.records, other.records, &all.records))
        throw Error(ErrorKind::input, place, "more than 2^64 records; expected fewer");
    all.digest += other.digest;
    all.failed.add(other.failed);
    all.sums.add(other.sums, all.statistics, place);
}

}  // namespace

void merge_stats(const std::vector<io::InputFile>& files, const Args& args) {
    const std::string output = args.text("output").value_or("-");
    if (output.empty()) args.fail("output");
    std::optional<ScanStats> all;
    for (const io::InputFile& file : files) {
        ScanStats stats = read_stats(file);
        if (!stats.is_complete)
            throw Error(ErrorKind::input, file.place,
                        "is of a scan that was interrupted; expected a complete one, as attn scan "
                        "--resume makes it");
        if (!all) {
            all = std::move(stats);
            continue;
        }
        if (stats.config != all->config)
            throw Error(ErrorKind::input, file.place,
                        "has " + difference_of_configs(file, files.front()) +
                            "; expected files of one scan");
        join_stats(*all, stats, file.place, files.front().place);
    }
    const std::size_t held = all->shards.held.size();
    const std::uint64_t of = all->shards.of;
    if (held == of) all->shards = {};
    io::OutputFile out(output);
    out.fill([&](io::Output& to) { to << stats_text(*all); });
    out.commit();
    if (held != of)
        show_notes({std::to_string(held) + " of " + std::to_string(of) +
                    " shards: attn merge joins the output with the others"});
}

}  // namespace attn::cli
