// Reads files of statistics, which may have been changed since they were written.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "cli/request/digest.hpp"
#include "cli/request/schemas.hpp"
#include "cli/scan/stats_file.hpp"
#include "core/base/error.hpp"
#include "core/scan/head_statistics.hpp"
#include "io/file/source.hpp"
#include "io/read/result_view.hpp"
#include "io/text/json_text.hpp"

namespace attn::cli {
namespace {

using nlohmann::json;

/// The most layers of a file, and the most heads of all its layers together, that are believed: a
/// short file must not cause a large allocation.
constexpr std::size_t max_heads = std::size_t{1} << 16;

class StatsReader {
public:
    explicit StatsReader(const io::InputFile& file) : file_(file) {
        if (!file.holds_object() || io::schema_of(file) != schemas::stats)
            fail("no statistics of attn scan");
    }

    ScanStats read() {
        const io::JsonDocument& document = *file_.document;
        read_config(document);
        read_corpus(value(document, "corpus"));
        const io::JsonMember& all = found(document, "sums");
        if (!document.holds_object(all)) fail("sums is not an object");
        const io::JsonDocument sums(*file_.source, all);
        read_layers(value(sums, "layers"));
        for (std::size_t i = 0; i < stats_.statistics.size(); ++i)
            read_sums(value(sums, std::string(head_statistics()[stats_.statistics[i]].name)), i);
        return std::move(stats_);
    }

private:
    [[noreturn]] void fail(const std::string& what) const {
        throw Error(ErrorKind::input, file_.place,
                    what + "; expected a file as attn scan writes it");
    }

    const io::JsonMember& found(const io::JsonDocument& document, const std::string& key) const {
        const io::JsonMember* const member = document.find(key);
        if (member == nullptr) fail("no " + key);
        return *member;
    }

    json value(const io::JsonDocument& document, const std::string& key) const {
        return document.read_value(found(document, key));
    }

    const json& in(const json& object, const char* key) const {
        if (!object.is_object() || !object.contains(key)) fail(std::string("no ") + key);
        return object[key];
    }

    std::uint64_t whole(const json& object, const char* key) const {
        const json& number = in(object, key);
        if (!number.is_number_unsigned()) fail(std::string(key) + " is not an integer");
        return number.get<std::uint64_t>();
    }

    std::string text(const json& object, const char* key) const {
        const json& string = in(object, key);
        if (!string.is_string()) fail(std::string(key) + " is not a string");
        return string.get<std::string>();
    }

    void read_config(const io::JsonDocument& document) {
        const io::JsonMember& member = found(document, "config");
        if (!document.holds_object(member)) fail("config is not an object");
        stats_.config = document.copied(member);
        const json config = document.read_value(member);
        const json& names = in(config, "stats");
        if (!names.is_array() || names.empty()) fail("stats is not a list of names");
        const auto all = head_statistics();
        for (const json& name : names) {
            const auto row = std::find_if(all.begin(), all.end(), [&](const HeadStatistic& known) {
                return name == std::string(known.name);
            });
            if (row == all.end()) fail("unknown statistic " + io::shortened(name.dump()));
            const auto place = static_cast<std::size_t>(row - all.begin());
            if (!stats_.statistics.empty() && place <= stats_.statistics.back())
                fail("the statistics are not in order");
            stats_.statistics.push_back(place);
        }
    }

    void read_corpus(const json& corpus) {
        const json& shards = in(corpus, "shards");
        const std::uint64_t of = whole(shards, "of");
        std::vector<std::uint64_t> held;
        const json& list = in(shards, "held");
        if (!list.is_array()) fail("held is not a list");
        for (const json& shard : list) {
            if (!shard.is_number_unsigned()) fail("held is not a list of integers");
            held.push_back(shard.get<std::uint64_t>());
        }
        if (!HeldShards::are_valid(of, held)) fail("held is not a list of shards");
        stats_.shards = HeldShards(of, std::move(held));
        const json& is_complete = in(corpus, "complete");
        if (!is_complete.is_boolean()) fail("complete is not true or false");
        stats_.is_complete = is_complete.get<bool>();
        stats_.records = whole(corpus, "records");
        if (!read_hex(text(corpus, "digest"), stats_.digest)) fail("digest is not a digest");
        stats_.sums.tokens = whole(corpus, "tokens");
        const json& failed = in(corpus, "failed");
        stats_.failed.count = whole(failed, "count");
        const json& first = in(failed, "first");
        if (!first.is_array() ||
            first.size() !=
                std::min<std::uint64_t>(stats_.failed.count, FailedRecords::max_listed) ||
            stats_.failed.count > stats_.records)
            fail("the count of failed records is wrong");
        for (const json& record : first) {
            FailedRecord read{whole(record, "record"), io::json_text(in(record, "id")),
                              text(record, "where"), text(record, "message")};
            if (!stats_.failed.first.empty() && read.number <= stats_.failed.first.back().number)
                fail("the failed records are not in order");
            stats_.failed.first.push_back(std::move(read));
        }
    }

    void read_layers(const json& layers) {
        if (!layers.is_array() || layers.size() > max_heads) fail("layers is not a list");
        for (const json& layer : layers) {
            const LayerKey key(
                layer.is_object() && layer.contains("part") ? text(layer, "part") : "",
                static_cast<std::size_t>(whole(layer, "layer")));
            if (!stats_.sums.layers.empty() && key <= stats_.sums.layers.rbegin()->first)
                fail("the layers are not in order");
            LayerSums& sums = stats_.sums.layers[key];
            sums.heads = static_cast<std::size_t>(whole(layer, "heads"));
            if (sums.heads == 0 || sums.heads > max_heads) fail("heads is not a number of heads");
            heads_ += sums.heads;
            if (heads_ > max_heads) fail("too many heads");
        }
        for (auto& [key, sums] : stats_.sums.layers)
            sums.sums.resize(sums.heads * stats_.statistics.size());
    }

    /// Calls take(value, sums) for each head of a list of lists.
    template <class Take>
    void for_heads(const json& object, const char* key, std::size_t statistic, const Take& take) {
        const json& layers = in(object, key);
        const std::string shape = std::string(key) + " does not have a value for each head";
        if (!layers.is_array() || layers.size() != stats_.sums.layers.size()) fail(shape);
        std::size_t at = 0;
        for (auto& [layer, sums] : stats_.sums.layers) {
            const json& heads = layers[at++];
            if (!heads.is_array() || heads.size() != sums.heads) fail(shape);
            for (std::size_t head = 0; head < sums.heads; ++head)
                take(heads[head], sums.sums[head * stats_.statistics.size() + statistic]);
        }
    }

    void read_sums(const json& object, std::size_t statistic) {
        for_heads(object, "count", statistic, [&](const json& count, FixedSums& sums) {
            if (!count.is_number_unsigned()) fail("count is not an integer");
            sums.count = count.get<std::uint64_t>();
        });
        const auto read_decimal = [&](const json& number, Int128& to) {
            if (!number.is_string() || !read_decimal_of(number.get_ref<const std::string&>(), to))
                fail("a sum is not an integer in quotes");
        };
        for_heads(object, "sum", statistic,
                  [&](const json& sum, FixedSums& sums) { read_decimal(sum, sums.sum); });
        for_heads(object, "squares", statistic,
                  [&](const json& sum, FixedSums& sums) { read_decimal(sum, sums.squares); });
        const auto read_fixed = [&](const json& number, const FixedSums& sums, std::int64_t& to) {
            if (number.is_null() && sums.count == 0) return;
            if (!number.is_number() || sums.count == 0) fail("an extreme is not a number");
            const auto real = number.get<double>();
            if (!(std::abs(real) < value_limit) || from_fixed(to_fixed(real)) != real)
                fail("an extreme is not a multiple of 2^-24");
            to = to_fixed(real);
        };
        for_heads(object, "least", statistic, [&](const json& number, FixedSums& sums) {
            read_fixed(number, sums, sums.least);
        });
        for_heads(object, "most", statistic, [&](const json& number, FixedSums& sums) {
            read_fixed(number, sums, sums.most);
        });
        for_heads(object, "histogram", statistic, [&](const json& bins, FixedSums& sums) {
            if (!bins.is_array() || bins.size() != bin_count) fail("a histogram has not 64 bins");
            std::uint64_t left = sums.count;
            for (std::size_t i = 0; i < bin_count; ++i) {
                if (!bins[i].is_number_unsigned() || bins[i].get<std::uint64_t>() > left)
                    fail("a histogram does not add up to its count");
                left -= sums.bins[i] = bins[i].get<std::uint64_t>();
            }
            if (left != 0) fail("a histogram does not add up to its count");
        });
        for_heads(object, "count", statistic, [&](const json&, FixedSums& sums) { check(sums); });
    }

    /// What holds for the sums of any values, so that mean and variance are within their range.
    void check(const FixedSums& sums) const {
        const auto count = static_cast<Int128>(sums.count);
        const std::int64_t largest = std::max(std::abs(sums.least), std::abs(sums.most));
        const bool is_within = sums.least <= sums.most && sums.sum >= count * sums.least &&
                               sums.sum <= count * sums.most && sums.squares >= 0;
        if (!is_within) fail("a sum is not one of values from least to most");
        // From here on the mean is at most the largest magnitude, below 2^48.
        const Int128 mean = count == 0 ? 0 : sums.sum / count;
        Int128 fewest = 0, most = 0;
        const bool is_spread =
            multiply(mean * mean, count, fewest) && fewest <= sums.squares &&
            (!multiply(Int128{largest} * largest, count, most) || sums.squares <= most);
        if (!is_spread) fail("a sum is not one of values from least to most");
    }

    const io::InputFile& file_;
    ScanStats stats_;
    std::size_t heads_ = 0;
};

}  // namespace

ScanStats read_stats(const io::InputFile& file) {
    return StatsReader(file).read();
}

}  // namespace attn::cli
