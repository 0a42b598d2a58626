// One head of the walk; see walk_head.hpp.
#include "cli/explain/walk_head.hpp"

namespace attn::cli {

HeadView::HeadView(Walk& walk, std::size_t head)
    : walk_(walk), arrays_(walk.arrays), words_(walk.words), page_(walk.page), s_(walk.settings()),
      g_(walk.plan), head_(head), mask_(row("mask")) {}

void walk_head(Walk& walk, std::size_t head) {
    const Plan& g = walk.plan;
    if (g.heads > 1) walk.page.heading(2, "Head " + std::to_string(head));
    if (g.kv_heads != g.heads)
        walk.page.paragraph("Grouped heads (" + walk.source("kv_heads") +
                            "): " + std::to_string(g.heads / g.kv_heads) +
                            " heads share one key head; this one uses key head " +
                            std::to_string(head * g.kv_heads / g.heads) + " of " +
                            sized("kv_heads", g.kv_heads) + ".");
    walk_scores(walk, head);
    walk_mask(walk, head);
    walk_weights(walk, head);
}

}  // namespace attn::cli
