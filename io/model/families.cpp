#include "io/model/families.hpp"

#include <algorithm>

namespace attn::io {

namespace families {
// NOLINTBEGIN(readability-redundant-declaration): only in a unity build
extern const Family gpt2, llama, bert, neox, meta, internlm2, baichuan, chatglm, timm, mha,
    notebook;
// NOLINTEND(readability-redundant-declaration)
constexpr const Family* all[] = {&gpt2,     &llama,   &bert, &neox, &meta,    &internlm2,
                                 &baichuan, &chatglm, &timm, &mha,  &notebook};
}  // namespace families

std::span<const Family* const> all_families() {
    return families::all;
}

const Family* find_family(std::string_view name) {
    const auto found = std::find_if(std::begin(families::all), std::end(families::all),
                                    [&](const Family* family) { return family->name == name; });
    return found == std::end(families::all) ? nullptr : *found;
}

const Family* family_of_type(std::string_view model_type) {
    for (const Family* family : families::all)
        for (const std::string_view type : family->types)
            if (type == model_type) return family;
    return nullptr;
}

std::string names_of(std::span<const Family* const> families, std::string_view between,
                     std::string_view last) {
    std::string text;
    for (const Family* family : families) {
        if (family != families.front()) text += family == families.back() ? last : between;
        text += family->name;
    }
    return text;
}

}  // namespace attn::io
