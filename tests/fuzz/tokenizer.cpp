// Tokenizers of any bytes, used on texts that have some of everything.
#include "io/tokenizer/tokenizer.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace attn::fuzz {

void use_tokenizer(std::string_view bytes) {
    static const std::string texts[] = {"", "a", "Life is short, it's 12345 <s>[CLS]",
                                        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab",
                                        "caf\u00e9 e\u0301\u0328 \u4e16\u754c "
                                        "\U0001f600\u200d\U0001f600\u3000\ufb01 \u1100\u1161\n\t"};
    error_of([&] {
        const io::Tokenizer tokenizer = io::Tokenizer::from_json("tokenizer.json", bytes);
        for (const std::string& text : texts)
            error_of([&] {
                const io::TokenizedText found = tokenizer.encode_pair(text, texts[2]);
                require(found.ids.size() == found.pieces.size(), "each id has its piece");
                require(found.ids.size() == found.type_ids.size(), "each id has its type");
                error_of([&] { tokenizer.decode(found.ids, false); });
            });
    });
}

}  // namespace attn::fuzz
