#include "cli/scan/held_shards.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace attn::cli {

bool HeldShards::are_valid(std::uint64_t of, const std::vector<std::uint64_t>& held) {
    return of >= 1 && of <= most * most && !held.empty() && held.size() <= most &&
           held.front() >= 1 && held.back() <= of &&
           std::adjacent_find(held.begin(), held.end(), std::greater_equal<>()) == held.end();
}

HeldShards::HeldShards(std::uint64_t of, std::vector<std::uint64_t> held)
    : of_(of), held_(std::move(held)) {
    reduce();
}

/// The numbers modulo a multiple of `of_`, ascending.
std::vector<std::uint64_t> HeldShards::expanded(std::uint64_t of) const {
    std::vector<std::uint64_t> all;
    for (std::uint64_t first = 0; first < of; first += of_)
        for (const std::uint64_t shard : held_) all.push_back(first + shard);
    return all;
}

HeldShards::Joined HeldShards::join(const HeldShards& other) {
    const std::uint64_t step = other.of_ / std::gcd(of_, other.of_);
    if (step > most * most / of_) return Joined::too_many;
    const std::uint64_t of = of_ * step;
    if (held_.size() * (of / of_) > most || other.held_.size() * (of / other.of_) > most)
        return Joined::too_many;
    const std::vector<std::uint64_t> own = expanded(of), others = other.expanded(of);
    std::vector<std::uint64_t> all;
    std::set_union(own.begin(), own.end(), others.begin(), others.end(), std::back_inserter(all));
    if (all.size() != own.size() + others.size()) return Joined::overlap;
    of_ = of;
    held_ = std::move(all);
    reduce();
    return Joined::yes;
}

/// If the records are those of a divisor of `of_`, they are those of every multiple of the least
/// such divisor, so that prime factors can be taken out one by one.
void HeldShards::reduce() {
    const auto take_out = [&](std::uint64_t prime) {
        const std::uint64_t of = of_ / prime;
        std::vector<std::uint64_t> held;
        for (const std::uint64_t shard : held_)
            if (shard <= of) held.push_back(shard);
        if (held.size() * prime != held_.size()) return false;
        for (const std::uint64_t shard : held_)
            if (!std::binary_search(held.begin(), held.end(), (shard - 1) % of + 1)) return false;
        of_ = of;
        held_ = std::move(held);
        return true;
    };
    std::uint64_t rest = of_;
    for (std::uint64_t prime = 2; rest != 1; ++prime) {
        if (prime * prime > rest) prime = rest;
        for (; rest % prime == 0; rest /= prime)
            if (of_ % prime == 0) take_out(prime);
    }
}

}  // namespace attn::cli
