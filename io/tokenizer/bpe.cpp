// Byte pair encoding: characters, then merges by a priority queue, in O(n log n) for a word of n.
#include <algorithm>
#include <array>
#include <queue>
#include <utility>

#include "io/text/utf8.hpp"
#include "io/tokenizer/tokenizer_parts.hpp"

namespace attn::io {
namespace {

/// A piece within a word, linked to its neighbours.
struct Symbol {
    std::uint32_t id;
    std::uint32_t before, after;  // indices; none: no_symbol
    bool is_gone = false;
};
constexpr std::uint32_t no_symbol = 0xffffffff;

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

/// A merge that is possible at a symbol, or was.
struct Candidate {
    std::uint32_t rank, at, merged;
    bool operator<(const Candidate& other) const {
        return std::pair(rank, at) > std::pair(other.rank, other.at);
    }
};

class Bpe final : public WordModel {
public:
    Bpe(std::shared_ptr<const Pieces> pieces, BpeSettings settings,
        const std::vector<Merge>& merges)
        : WordModel(std::move(pieces)), settings_(std::move(settings)), merges_(merges) {
        for (unsigned byte = 0; byte < 256; ++byte)
            bytes_[byte] = this->pieces().find(byte_piece(static_cast<unsigned char>(byte)));
        if (settings_.unknown) unknown_ = this->pieces().find(*settings_.unknown);
    }

    void append(std::string_view word, std::vector<Token>& tokens) const override {
        if (settings_.ignores_merges)
            if (const auto id = pieces().find(word)) return tokens.push_back(token(*id));
        std::vector<Symbol> symbols = characters_of(word);
        merge(symbols);
        for (const Symbol& symbol : symbols)
            if (!symbol.is_gone) tokens.push_back(token(symbol.id));
    }

private:
    std::uint32_t unknown_id() const {
        if (!unknown_) fail_unknown_token(settings_.place, *settings_.unknown);
        return *unknown_;
    }

    std::vector<Symbol> characters_of(std::string_view word) const {
        std::vector<Symbol> symbols;
        std::string spelled;
        bool has_unknown = false;  // which is not written yet
        const auto write = [&](std::uint32_t id) {
            const auto size = static_cast<std::uint32_t>(symbols.size());
            if (size != 0) symbols.back().after = size;
            symbols.push_back({id, size == 0 ? no_symbol : size - 1, no_symbol});
        };
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
            if (const auto id = pieces().find(character)) {
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

    void merge(std::vector<Symbol>& symbols) const {
        std::vector<Candidate> first;
        const auto candidate = [&](std::uint32_t at) -> const MergeTable::Row* {
            const std::uint32_t after = symbols[at].after;
            return after == no_symbol ? nullptr : merges_.find(symbols[at].id, symbols[after].id);
        };
        for (std::uint32_t at = 0; at < symbols.size(); ++at)
            if (const auto* row = candidate(at)) first.push_back({row->rank, at, row->merged});
        std::priority_queue<Candidate> queue(std::less<Candidate>(), std::move(first));
        const auto push = [&](std::uint32_t at) {
            if (const auto* row = candidate(at)) queue.push({row->rank, at, row->merged});
        };
        while (!queue.empty()) {
            const Candidate top = queue.top();
            queue.pop();
            Symbol& left = symbols[top.at];
            if (left.is_gone) continue;
            const auto* row = candidate(top.at);
            if (row == nullptr || row->merged != top.merged) continue;
            Symbol& right = symbols[left.after];
            right.is_gone = true;
            left.id = top.merged;
            left.after = right.after;
            if (left.after != no_symbol) symbols[left.after].before = top.at;
            if (left.before != no_symbol) push(left.before);
            push(top.at);
        }
    }

    const BpeSettings settings_;
    const MergeTable merges_;
    std::array<std::optional<std::uint32_t>, 256> bytes_;
    std::optional<std::uint32_t> unknown_;
};

/// A pair of neighbours whose texts together are a piece.
struct ScoredPair {
    float score;
    std::uint32_t at;
    std::uint32_t size;  // bytes of both
    bool operator<(const ScoredPair& other) const {
        return score != other.score ? score < other.score : at > other.at;
    }
};

struct ScoredSymbol {
    std::size_t begin, size;
    std::uint32_t before, after;
};

class ScoredBpe final : public WordModel {
public:
    ScoredBpe(std::shared_ptr<const Pieces> pieces, std::vector<float> scores,
              std::optional<std::uint32_t> unknown)
        : WordModel(std::move(pieces)), scores_(std::move(scores)), unknown_(unknown) {}

    void append(std::string_view word, std::vector<Token>& tokens) const override {
        std::vector<ScoredSymbol> symbols;
        for (std::size_t at = 0; at < word.size();) {
            const std::size_t size = std::max<std::size_t>(character_size(word.substr(at)), 1);
            const auto index = static_cast<std::uint32_t>(symbols.size());
            symbols.push_back({at, size, index == 0 ? no_symbol : index - 1, index + 1});
            at += size;
        }
        if (symbols.empty()) return;
        symbols.back().after = no_symbol;
        std::priority_queue<ScoredPair> queue;
        const auto push = [&](std::uint32_t at) {
            if (at == no_symbol || symbols[at].after == no_symbol) return;
            const std::size_t size = symbols[at].size + symbols[symbols[at].after].size;
            if (size > longest_piece) return;
            if (const auto id = pieces().find(word.substr(symbols[at].begin, size)))
                queue.push({*id < scores_.size() ? scores_[*id] : 0, at,
                            static_cast<std::uint32_t>(size)});
        };
        for (std::uint32_t at = 0; at < symbols.size(); ++at) push(at);
        while (!queue.empty()) {
            const ScoredPair top = queue.top();
            queue.pop();
            ScoredSymbol& left = symbols[top.at];
            if (left.size == 0 || left.after == no_symbol) continue;
            ScoredSymbol& right = symbols[left.after];
            if (left.size + right.size != top.size) continue;
            left.size += right.size;
            right.size = 0;
            left.after = right.after;
            if (left.after != no_symbol) symbols[left.after].before = top.at;
            push(left.before);
            push(top.at);
        }
        for (const ScoredSymbol& symbol : symbols)
            if (symbol.size != 0) append_piece(word.substr(symbol.begin, symbol.size), tokens);
    }

private:
    void append_piece(std::string_view piece, std::vector<Token>& tokens) const {
        if (const auto id = pieces().find(piece)) return tokens.push_back(token(*id));
        for (const char byte : piece)
            if (const auto id = pieces().find(byte_piece(static_cast<unsigned char>(byte))))
                tokens.push_back(token(*id));
            else if (unknown_)
                tokens.push_back(token(*unknown_));
    }

    const std::vector<float> scores_;
    const std::optional<std::uint32_t> unknown_;
};

}  // namespace

std::string byte_piece(unsigned char byte) {
    constexpr std::string_view digits = "0123456789ABCDEF";
    return {'<', '0', 'x', digits[byte >> 4], digits[byte & 15], '>'};
}

WordModelOwner make_bpe(std::shared_ptr<const Pieces> pieces, BpeSettings settings,
                        const std::vector<Merge>& merges) {
    return std::make_unique<Bpe>(std::move(pieces), std::move(settings), merges);
}

WordModelOwner make_scored_bpe(std::shared_ptr<const Pieces> pieces, std::vector<float> scores,
                               std::optional<std::uint32_t> unknown) {
    return std::make_unique<ScoredBpe>(std::move(pieces), std::move(scores), unknown);
}

}  // namespace attn::io
