// Byte pair encoding: characters, then merges by a priority queue, in O(n log n) for a word of n.
#include <algorithm>
#include <queue>

#include "io/text/utf8.hpp"
#include "io/tokenizer/tokenizer_parts.hpp"

namespace attn::io {
namespace {

constexpr std::uint32_t no_symbol = 0xffffffff;

/// A piece within a word, linked to its neighbours.
struct Symbol {
    std::uint32_t value;          // its id, or, where pieces are found by their texts, its size
    std::uint32_t before, after;  // indices; none: no_symbol
    bool is_gone = false;
};

void append_symbol(std::vector<Symbol>& symbols, std::uint32_t value) {
    const auto size = static_cast<std::uint32_t>(symbols.size());
    if (size != 0) symbols.back().after = size;
    symbols.push_back({value, size == 0 ? no_symbol : size - 1, no_symbol});
}

/// A merge that is possible at a symbol, or was. The lowest rank comes first.
template <class Rank>
struct Candidate {
    Rank rank;
    std::uint32_t at, merged;  // the value of both
    bool operator<(const Candidate& other) const {
        return std::pair(rank, at) > std::pair(other.rank, other.at);
    }
};

/// `find(left, right)`: the candidate of two neighbours, or nothing. `is_same(candidate)`: whether
/// its neighbours are still those that it was found for.
template <class Rank, class Find, class IsSame>
void merge(std::vector<Symbol>& symbols, const Find& find, const IsSame& is_same) {
    std::vector<Candidate<Rank>> first;
    const auto offer = [&](std::uint32_t at, const auto& take) {
        if (at == no_symbol || symbols[at].after == no_symbol) return;
        if (const std::optional<Candidate<Rank>> found = find(at, symbols[at].after)) take(*found);
    };
    for (std::uint32_t at = 0; at < symbols.size(); ++at)
        offer(at, [&](const auto& found) { first.push_back(found); });
    std::priority_queue<Candidate<Rank>> queue(std::less<Candidate<Rank>>(), std::move(first));
    const auto push = [&](const auto& found) { queue.push(found); };
    while (!queue.empty()) {
        const Candidate<Rank> top = queue.top();
        queue.pop();
        Symbol& left = symbols[top.at];
        if (left.is_gone || left.after == no_symbol || !is_same(top)) continue;
        Symbol& right = symbols[left.after];
        right.is_gone = true;
        left.value = top.merged;
        left.after = right.after;
        if (left.after != no_symbol) symbols[left.after].before = top.at;
        offer(left.before, push);
        offer(top.at, push);
    }
}

/// Pairs by the left id; the right ids of one left id are sorted.
class MergeTable {
public:
    struct Row {
        std::uint32_t left, right, rank, merged;
    };

    explicit MergeTable(const std::vector<Merge>& merges) {
        rows_.reserve(merges.size());
        for (const Merge& merge : merges)
            rows_.push_back(
                {merge.left, merge.right, static_cast<std::uint32_t>(rows_.size()), merge.merged});
        const auto key = [](const Row& row) { return std::pair(row.left, row.right); };
        std::ranges::stable_sort(rows_,
                                 [&](const Row& a, const Row& b) { return key(a) < key(b); });
        // Of a pair that is given twice the last counts.
        const auto kept = std::unique(rows_.rbegin(), rows_.rend(),
                                      [&](const Row& a, const Row& b) { return key(a) == key(b); });
        rows_.erase(rows_.begin(), kept.base());
        for (const Row& row : rows_)
            if (lefts_.empty() || lefts_.back().first != row.left)
                lefts_.emplace_back(row.left, static_cast<std::size_t>(&row - rows_.data()));
    }

    const Row* find(std::uint32_t left, std::uint32_t right) const {
        const auto group =
            std::lower_bound(lefts_.begin(), lefts_.end(), left,
                             [](const auto& a, std::uint32_t b) { return a.first < b; });
        if (group == lefts_.end() || group->first != left) return nullptr;
        const auto begin = rows_.begin() + static_cast<std::ptrdiff_t>(group->second);
        const auto end =
            std::next(group) == lefts_.end()
                ? rows_.end()
                : rows_.begin() + static_cast<std::ptrdiff_t>(std::next(group)->second);
        const auto row = std::lower_bound(
            begin, end, right, [](const Row& a, std::uint32_t b) { return a.right < b; });
        return row == end || row->right != right ? nullptr : &*row;
    }

private:
    std::vector<Row> rows_;
    std::vector<std::pair<std::uint32_t, std::size_t>> lefts_;
};

class Bpe {
public:
    Bpe(std::shared_ptr<const Pieces> pieces, BpeSettings settings,
        const std::vector<Merge>& merges)
        : pieces_(std::move(pieces)), settings_(std::move(settings)), merges_(merges) {
        for (unsigned byte = 0; byte < 256; ++byte)
            bytes_[byte] = pieces_->find(byte_piece(static_cast<unsigned char>(byte)));
        if (settings_.unknown) unknown_ = pieces_->find(*settings_.unknown);
    }

    void operator()(std::string_view word, std::vector<Token>& tokens) const {
        if (settings_.ignores_merges)
            if (const auto id = pieces_->find(word))
                return tokens.push_back(token_of(*pieces_, *id));
        std::vector<Symbol> symbols = characters_of(word);
        const auto row_of = [&](std::uint32_t left, std::uint32_t right) {
            return merges_.find(symbols[left].value, symbols[right].value);
        };
        merge<std::uint32_t>(
            symbols,
            [&](std::uint32_t left,
                std::uint32_t right) -> std::optional<Candidate<std::uint32_t>> {
                const MergeTable::Row* const row = row_of(left, right);
                if (row == nullptr) return {};
                return {{row->rank, left, row->merged}};
            },
            [&](const auto& top) {
                const MergeTable::Row* const row = row_of(top.at, symbols[top.at].after);
                return row != nullptr && row->merged == top.merged;
            });
        for (const Symbol& symbol : symbols)
            if (!symbol.is_gone) tokens.push_back(token_of(*pieces_, symbol.value));
    }

private:
    std::uint32_t unknown_id() const {
        if (!unknown_) fail_unknown_token(settings_.location, *settings_.unknown);
        return *unknown_;
    }

    std::vector<Symbol> characters_of(std::string_view word) const {
        std::vector<Symbol> symbols;
        std::string spelled;
        bool has_unknown = false;  // which is not written yet
        const auto write = [&](std::uint32_t id) { append_symbol(symbols, id); };
        for (std::string_view rest = word; !rest.empty();) {
            const std::size_t size = std::max<std::size_t>(character_size(rest), 1);
            std::string_view character = rest.substr(0, size);
            const bool is_first = rest.size() == word.size(), is_last = rest.size() == size;
            const std::string_view prefix = is_first ? "" : std::string_view(settings_.prefix),
                                   suffix = is_last ? std::string_view(settings_.suffix) : "";
            if (!prefix.empty() || !suffix.empty()) {
                ((spelled = prefix) += character) += suffix;
                character = spelled;
            }
            rest.remove_prefix(size);
            if (const auto id = pieces_->find(character)) {
                if (has_unknown) write(unknown_id());
                has_unknown = false;
                write(*id);
                continue;
            }
            // As tokenizers does, bytes overtake an unknown character before them.
            const bool has_bytes =
                settings_.falls_back_to_bytes && std::ranges::all_of(character, [&](char byte) {
                    return bytes_[static_cast<unsigned char>(byte)].has_value();
                });
            if (has_bytes) {
                for (const char byte : character) write(*bytes_[static_cast<unsigned char>(byte)]);
            } else if (settings_.unknown) {
                if (has_unknown && !settings_.fuses_unknown) write(unknown_id());
                has_unknown = true;
                unknown_id();
            }
        }
        if (has_unknown) write(unknown_id());
        return symbols;
    }

    std::shared_ptr<const Pieces> pieces_;
    BpeSettings settings_;
    MergeTable merges_;
    std::array<std::optional<std::uint32_t>, 256> bytes_;
    std::optional<std::uint32_t> unknown_;
};

struct ScoredBpe {
    std::shared_ptr<const Pieces> pieces;
    std::vector<float> scores;
    std::optional<std::uint32_t> unknown;

    void operator()(std::string_view word, std::vector<Token>& tokens) const {
        std::vector<Symbol> symbols;
        std::vector<std::size_t> begins;
        for (std::size_t at = 0; at < word.size(); at += symbols.back().value) {
            const std::size_t size = std::max<std::size_t>(character_size(word.substr(at)), 1);
            append_symbol(symbols, static_cast<std::uint32_t>(size));
            begins.push_back(at);
        }
        const auto size_of = [&](std::uint32_t left, std::uint32_t right) {
            return symbols[left].value + symbols[right].value;
        };
        merge<float>(
            symbols,
            [&](std::uint32_t left, std::uint32_t right) -> std::optional<Candidate<float>> {
                const std::uint32_t size = size_of(left, right);
                if (size > longest_piece) return {};
                const auto id = pieces->find(word.substr(begins[left], size));
                if (!id) return {};
                return {{*id < scores.size() ? -scores[*id] : 0, left, size}};
            },
            [&](const auto& top) { return size_of(top.at, symbols[top.at].after) == top.merged; });
        for (std::size_t i = 0; i < symbols.size(); ++i)
            if (!symbols[i].is_gone) append_piece(word.substr(begins[i], symbols[i].value), tokens);
    }

    void append_piece(std::string_view piece, std::vector<Token>& tokens) const {
        if (const auto id = pieces->find(piece)) return tokens.push_back(token_of(*pieces, *id));
        for (const char byte : piece)
            if (const auto id = pieces->find(byte_piece(static_cast<unsigned char>(byte))))
                tokens.push_back(token_of(*pieces, *id));
            else if (unknown)
                tokens.push_back(token_of(*pieces, *unknown));
    }
};

}  // namespace

std::string byte_piece(unsigned char byte) {
    constexpr std::string_view digits = "0123456789ABCDEF";
    return {'<', '0', 'x', digits[byte >> 4], digits[byte & 15], '>'};
}

WordModel make_bpe(std::shared_ptr<const Pieces> pieces, BpeSettings settings,
                   const std::vector<Merge>& merges) {
    return Bpe(std::move(pieces), std::move(settings), merges);
}

WordModel make_scored_bpe(std::shared_ptr<const Pieces> pieces, std::vector<float> scores,
                          std::optional<std::uint32_t> unknown) {
    return ScoredBpe{std::move(pieces), std::move(scores), unknown};
}

}  // namespace attn::io
