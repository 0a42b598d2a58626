// The models that need no merges.
#include <algorithm>
#include <cmath>
#include <limits>

#include "io/file/source.hpp"
#include "io/text/utf8.hpp"
#include "io/tokenizer/tokenizer_parts.hpp"

namespace attn::io {
namespace {

struct WordPiece {
    std::shared_ptr<const Pieces> pieces;
    WordPieceSettings settings;

    void operator()(std::string_view word, std::vector<Token>& tokens) const {
        const auto characters = static_cast<std::size_t>(std::ranges::count_if(
            word, [](char c) { return (static_cast<unsigned char>(c) & 0xc0u) != 0x80u; }));
        const std::size_t before = tokens.size();
        std::string continued;
        for (std::size_t at = 0; at < word.size() && characters <= settings.longest_word;) {
            std::string_view rest = word.substr(at);
            std::size_t extra = 0;  // bytes of the prefix
            if (at != 0 && !settings.prefix.empty()) {
                extra = settings.prefix.size();
                continued = settings.prefix;
                continued += rest.substr(0, longest_piece);
                rest = continued;
            }
            std::size_t longest = 0;
            std::uint32_t found = 0;
            pieces->for_each_prefix(rest, [&](std::size_t size, std::uint32_t id) {
                if (size <= extra) return;
                longest = size;
                found = id;
            });
            if (longest == 0) break;
            tokens.push_back(token_of(*pieces, found));
            at += longest - extra;
            if (at == word.size()) return;
        }
        tokens.resize(before);
        const auto unknown = pieces->find(settings.unknown);
        if (!unknown) fail_unknown_token(settings.location, settings.unknown);
        tokens.push_back(token_of(*pieces, *unknown));
    }
};

/// The most probable way from the start of a word to each of its bytes.
struct BestWay {
    double score = 0;
    std::size_t from = std::numeric_limits<std::size_t>::max();
    std::uint32_t id = 0;
    bool is_reached() const { return from != std::numeric_limits<std::size_t>::max(); }
};

class Unigram {
public:
    Unigram(std::shared_ptr<const Pieces> pieces, UnigramSettings settings)
        : pieces_(std::move(pieces)), settings_(std::move(settings)) {
        double lowest = std::numeric_limits<double>::infinity();
        for (const double score : settings_.scores)
            if (std::isfinite(score)) lowest = std::min(lowest, score);
        constexpr double penalty = 10;  // of a character that is not a piece
        unknown_score_ = lowest - penalty;
    }

    void operator()(std::string_view word, std::vector<Token>& tokens) const {
        const std::vector<BestWay> ways = best_ways(word);
        std::vector<std::string_view> pieces;  // from the last to the first
        bool was_unknown = false;
        for (std::size_t end = word.size(); end > 0;) {
            const BestWay& way = ways[end];
            const bool is_unknown = settings_.unknown && way.id == *settings_.unknown;
            const std::string_view piece = word.substr(way.from, end - way.from);
            if (is_unknown && was_unknown)
                pieces.back() = word.substr(way.from, piece.size() + pieces.back().size());
            else
                pieces.push_back(piece);
            was_unknown = is_unknown;
            end = way.from;
        }
        for (auto piece = pieces.rbegin(); piece != pieces.rend(); ++piece)
            append_piece(*piece, tokens);
    }

private:
    std::vector<BestWay> best_ways(std::string_view word) const {
        std::vector<BestWay> ways(word.size() + 1);
        const auto offer = [&](std::size_t from, std::size_t size, double score, std::uint32_t id) {
            BestWay& way = ways[from + size];
            if (way.is_reached() && score <= way.score) return;
            way = {score, from, id};
        };
        for (std::size_t at = 0; at < word.size();) {
            const std::string_view rest = word.substr(at);
            const std::size_t character = std::max<std::size_t>(character_size(rest), 1);
            const double before = ways[at].score;
            bool has_character = false;
            pieces_->for_each_prefix(rest, [&](std::size_t size, std::uint32_t id) {
                offer(at, size, settings_.scores[id] + before, id);
                has_character = has_character || size == character;
            });
            if (!has_character) {
                const BestWay& way = ways[at + character];
                const double score = unknown_score_ + before;
                if (!way.is_reached() || score > way.score) {
                    if (!settings_.unknown) fail_unknown();
                    offer(at, character, score, *settings_.unknown);
                }
            }
            at += character;
        }
        return ways;
    }

    [[noreturn]] void fail_unknown() const {
        throw Error(ErrorKind::input, settings_.location,
                    "a character is unknown, and there is no unk_id; expected one");
    }

    void append_piece(std::string_view piece, std::vector<Token>& tokens) const {
        if (const auto id = pieces_->find(piece))
            return tokens.push_back({*id, std::string(piece)});
        if (settings_.falls_back_to_bytes) {
            const std::size_t before = tokens.size();
            for (const char byte : piece)
                if (const auto id = pieces_->find(byte_piece(static_cast<unsigned char>(byte))))
                    tokens.push_back(token_of(*pieces_, *id));
            if (tokens.size() - before == piece.size()) return;
            tokens.resize(before);
        }
        if (!settings_.unknown) fail_unknown();
        tokens.push_back({*settings_.unknown, std::string(piece)});
    }

    std::shared_ptr<const Pieces> pieces_;
    UnigramSettings settings_;
    double unknown_score_ = 0;
};

}  // namespace

void fail_unknown_token(const std::string& location, const std::string& unknown) {
    throw Error(ErrorKind::input, location,
                "a word is unknown, and the vocabulary does not have unk_token, ",
                quoted_name(unknown), "; expected it there");
}

WordModel make_word_piece(std::shared_ptr<Pieces> pieces, WordPieceSettings settings) {
    pieces->sort();
    return WordPiece{std::move(pieces), std::move(settings)};
}

WordModel make_word_level(const std::shared_ptr<const Pieces>& pieces, const std::string& location,
                          const std::string& unknown) {
    return [pieces, location, unknown](std::string_view word, std::vector<Token>& tokens) {
        auto id = pieces->find(word);
        if (!id) id = pieces->find(unknown);
        if (!id) fail_unknown_token(location, unknown);
        tokens.push_back(token_of(*pieces, *id));
    };
}

WordModel make_unigram(std::shared_ptr<Pieces> pieces, UnigramSettings settings) {
    pieces->sort();
    return Unigram(std::move(pieces), std::move(settings));
}

}  // namespace attn::io
