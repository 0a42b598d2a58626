// Which records of a corpus a file of statistics has.
#pragma once

#include <cstdint>
#include <vector>

namespace attn::cli {

/// The records whose number, from 1 on, is one of `held` modulo `of`. The form is canonical: no
/// smaller `of` gives the same records.
class HeldShards {
public:
    /// The shard, from 1 to `of`.
    HeldShards(std::uint64_t shard, std::uint64_t of) : of_(of), held_{shard} {}
    /// Ascending numbers from 1 to `of`; false if they have another form.
    static bool are_valid(std::uint64_t of, const std::vector<std::uint64_t>& held);
    HeldShards(std::uint64_t of, std::vector<std::uint64_t> held);

    std::uint64_t of() const { return of_; }
    const std::vector<std::uint64_t>& held() const { return held_; }

    enum class Joined { yes, overlap, too_many };
    /// Adds the records of `other`, unless both have a record, or the result would have more than
    /// a million numbers.
    Joined join(const HeldShards& other);

    static constexpr std::uint64_t most = 1'000'000;

    bool operator==(const HeldShards&) const = default;

private:
    std::vector<std::uint64_t> expanded(std::uint64_t of) const;
    void reduce();

    std::uint64_t of_;
    std::vector<std::uint64_t> held_;
};

}  // namespace attn::cli
