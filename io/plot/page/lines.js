
// ---- Lines between tokens: queries on the left, keys on the right

const mostInFull = 64;                     // tokens; of more, those around the selected one,
const tokensAround = 40, heaviest = 40;    // and the heaviest across
const linesCanvas = element('lines-canvas');
const lists = {row: element('queries'), column: element('key-tokens')};
const otherSide = {row: 'column', column: 'row'};

let heads = [];         // heads with lines: {head, numbers, flags}
let leading = [];       // heads whose weights are shown as digits: the selected one, or those of the mean
let lineRow = 18;       // pixels per token
let placeIn = {row: new Map(), column: new Map()};  // token: its index in its list
let pointed = null;     // the token below the pointer, or with the keyboard: {by, index}
let background = null;  // the lines of all tokens, faint

const canHaveLines = () => map.rows.axis === 'query' && map.columns.axis === 'key' && !map.diverging;
const isInFull = () => Math.max(map.rows.size, map.columns.size) <= mostInFull;
const sideOf = (by) => by === 'row' ? map.rows : map.columns;
const current = () => pointed ?? {by: chosen.by, index: chosen[chosen.by]};
const isElsewhere = () => current().by !== chosen.by || current().index !== chosen[chosen.by];

function weightOf(head, by, index, other) {
    const cell = by === 'row' ? index * map.columns.size + other : other * map.columns.size + index;
    const value = head.flags[cell] ? 0 : head.numbers[cell];
    return Number.isFinite(value) ? value : 0;
}

/// The targets of a token's lines: each other token's weight, and the largest weight of all heads.
function fanOf({by, index}) {
    const weights = new Float64Array(sideOf(otherSide[by]).size);
    let full = 0;
    for (const head of heads)
        for (let other = 0; other < weights.length; ++other) {
            const weight = weightOf(head, by, index, other);
            if (leading.includes(head)) weights[other] += weight / leading.length;
            full = Math.max(full, weight);
        }
    return {weights, full};
}

const byWeight = (weights) => (a, b) => weights[b] - weights[a] || a - b;

function tokenButton(by, index) {
    const side = sideOf(by);
    const place = side.tokens && !isInFull() ? placeOf(side, index) : '';
    const button = made('button', '', made('span', 'index', place), tokenOf(side, index), made('span', 'weight'));
    button.tabIndex = -1;
    button.dataset.index = index;
    button.ariaLabel = button.title = spokenName(side, index);
    return made('li', '', button);
}

/// If there are too many: those around the selected token, and the heaviest on the other side, in
/// order.
function listed(by) {
    const size = sideOf(by).size, all = Array.from({length: size}, (_, i) => i);
    if (isInFull() || size <= tokensAround) return all;
    const index = chosen[chosen.by];
    if (by === chosen.by) {
        const first = Math.min(Math.max(index - tokensAround / 2, 0), size - tokensAround);
        return all.slice(first, first + tokensAround);
    }
    const {weights} = fanOf({by: chosen.by, index});
    return all.sort(byWeight(weights)).slice(0, heaviest).filter((i) => weights[i] > 0).sort((a, b) => a - b);
}

function moreButton(text, by, index) {
    const button = made('button', 'more', text);
    button.addEventListener('click', () => choose({by, [by]: index}));
    return made('li', '', button);
}

function fillList(by) {
    const indices = listed(by), items = indices.map((index) => tokenButton(by, index));
    const size = sideOf(by).size, first = indices[0], last = indices.at(-1);
    placeIn[by] = new Map(indices.map((index, i) => [index, i]));
    if (by === chosen.by) {
        if (last < size - 1) items.push(moreButton(`↓ ${size - 1 - last} more`, by, last + tokensAround / 2));
        if (first > 0) {
            items.unshift(moreButton(`↑ ${first} more`, by, first - tokensAround / 2));
            for (const index of indices) placeIn[by].set(index, placeIn[by].get(index) + 1);
        }
    } else if (indices.length < size) {
        const {weights} = fanOf({by: chosen.by, index: chosen[chosen.by]});
        const most = weights.reduce((most, weight, i) => placeIn[by].has(i) ? most : Math.max(most, weight), 0);
        items.push(made('li', 'rest', `${size - indices.length} others, ${briefText(most)} at most`));
    }
    lists[by].replaceChildren(...items);
}

/// Rebuilds the lists, keeping the focus.
function fillLists() {
    const focused = document.activeElement?.closest?.('.tokens') ? document.activeElement.dataset.index : null;
    const by = lists.row.contains(document.activeElement) ? 'row' : 'column';
    const tallest = Math.max(map.rows.size, map.columns.size);
    lineRow = isInFull() ? Math.min(22, Math.max(15, Math.floor(0.74 * innerHeight / tallest))) : 18;
    element('lines-view').style.setProperty('--line-row', `${lineRow}px`);
    for (const side of ['row', 'column']) fillList(side);
    if (focused !== null) buttonOf(by, focused)?.focus({preventScroll: true});
}

const buttonOf = (by, index) => lists[by].querySelector(`[data-index="${index}"]`);

// ---- The lines themselves

function addCurve(context, width, by, index, other, shift) {
    const [row, column] = by === 'row' ? [index, other] : [other, index];
    const y = (side, token) => (placeIn[side].get(token) + 0.5) * lineRow + shift;
    const from = y('row', row), to = y('column', column);
    context.moveTo(0, from);
    context.bezierCurveTo(width / 2, from, width / 2, to, width, to);
}

/// Heads are slightly offset, so that each is visible.
const shiftOf = (i) => heads.length < 2 ? 0
    : (i / (heads.length - 1) - 0.5) * Math.min(lineRow - 6, 2 * heads.length);

const colorOfHead = ({head}) => head === null || besides().length < 2 ? cssColor('--accent') : headColor(head);

/// The leading heads last and in full colour.
function drawFan(context, width, focus, {weights, full}) {
    if (full === 0) return;
    const order = [...heads.keys()].sort((a, b) => leading.includes(heads[a]) - leading.includes(heads[b]));
    for (const i of order) {
        const head = heads[i], strength = leading.includes(head) ? 1 : 0.45;
        context.strokeStyle = colorOfHead(head);
        for (let other = 0; other < weights.length; ++other) {
            const share = weightOf(head, focus.by, focus.index, other) / full;
            if (share < 0.01 || !placeIn[otherSide[focus.by]].has(other)) continue;
            context.globalAlpha = strength * (0.15 + 0.85 * share);
            context.lineWidth = 0.5 + (leading.length > 4 ? 2 : 3.5) * share;
            context.beginPath();
            addCurve(context, width, focus.by, focus.index, other, shiftOf(i));
            context.stroke();
        }
    }
    context.globalAlpha = 1;
}

/// The strongest key of every query, as a background for the selected one.
function drawBackground(width, height) {
    background = document.createElement('canvas');
    background.width = linesCanvas.width;
    background.height = linesCanvas.height;
    const context = background.getContext('2d');
    context.scale(devicePixelRatio, devicePixelRatio);
    context.strokeStyle = cssColor('--muted');
    for (const [i, head] of heads.entries())
        for (let row = 0; row < map.rows.size; ++row)
            for (let column = 0; column < map.columns.size; ++column) {
                const weight = weightOf(head, 'row', row, column);
                if (weight < 0.1) continue;
                context.globalAlpha = Math.min(1, weight) * Math.max(0.1, 0.35 / heads.length);
                context.lineWidth = 0.5 + weight;
                context.beginPath();
                addCurve(context, width, 'row', row, column, shiftOf(i));
                context.stroke();
            }
}

const drawLines = oncePerFrame(() => heads.length > 0 && chosen.row !== null && drawLinesNow());

function drawLinesNow() {
    const width = linesCanvas.clientWidth, focus = current(), fan = fanOf(focus);
    const height = lineRow * Math.max(lists.row.children.length, lists.column.children.length);
    if (width === 0) return;
    if (linesCanvas.width !== Math.round(width * devicePixelRatio) ||
        linesCanvas.height !== Math.round(height * devicePixelRatio)) {
        linesCanvas.style.height = `${height}px`;
        linesCanvas.width = Math.round(width * devicePixelRatio);
        linesCanvas.height = Math.round(height * devicePixelRatio);
        background = null;
    }
    const context = linesCanvas.getContext('2d');
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, linesCanvas.width, linesCanvas.height);
    if (isInFull()) {
        if (!background) drawBackground(width, height);
        context.drawImage(background, 0, 0);
    }
    context.scale(devicePixelRatio, devicePixelRatio);
    drawFan(context, width, focus, fan);
    markTokens(focus, fan);
}

/// The weight of each token on the other side, as its background and in digits.
function markTokens(focus, {weights}) {
    const most = weights.reduce((most, weight) => Math.max(most, weight), 0);
    for (const by of ['row', 'column'])
        for (const button of lists[by].querySelectorAll('button[data-index]')) {
            const index = Number(button.dataset.index), isSource = by === focus.by;
            const share = isSource || most === 0 ? 0 : weights[index] / most;
            button.classList.toggle('source', isSource && index === focus.index);
            button.setAttribute('aria-pressed', String(by === chosen.by && index === chosen[by]));
            button.tabIndex = index === chosen[by] ? 0 : -1;
            button.classList.toggle('dim', !isSource && weights[index] === 0);
            button.style.setProperty('--share', `${Math.round(45 * share)}%`);
            button.lastChild.textContent = share >= 0.05 ? weights[index].toFixed(2) : '';
        }
    const largest = Array.from(weights.keys()).sort(byWeight(weights)).slice(0, 3).filter((i) => weights[i] > 0);
    const across = sideOf(otherSide[focus.by]);
    const words = largest.flatMap((index, i) => [i ? ', ' : '', ...quoted(across, index), ` ${briefText(weights[index])}`]);
    element('lines-title').replaceChildren(
        ...(chosen.by === 'row' ? ['What ', ...quoted(map.rows, chosen.row), ' attends to']
                                : ['Who attends to ', ...quoted(map.columns, chosen.column)]),
        hasHeads() && map.panels.length > 1 ? `, ${nameOfShown()}` : '');
    const pointing = isElsewhere() ? ['Pointed at: ', ...nameOf(sideOf(focus.by), focus.index), '. '] : [];
    element('lines-say').replaceChildren(...pointing, ...(largest.length ? ['Most: ', ...words] : ['No weights.']),
                                         leading.length > 1 ? `, ${headCount(leading.length)}` : '');
}

/// “next”, or `query 3` if there are no tokens.
const quoted = (side, index) => side.tokens ? ['“', tokenOf(side, index), '”'] : nameOf(side, index);

// ---- What they show

let linesRead = null;  // a new request cancels the previous one
let linesMap = null;   // what the heads are of

async function showLines() {
    element('lines').hidden = !canHaveLines();
    const mine = linesRead = {}, of = map;
    if (of !== linesMap) heads = [];
    linesMap = of;
    if (!canHaveLines()) return;
    const isAlone = element('this-head').checked && !chosen.isMean;
    element('this-head').parentElement.hidden = chosen.isMean || besides().length < 2 || !hasHeads();
    const lead = chosen.isMean ? meanPanels() : [chosen.panel];
    const panels = isAlone ? lead : besides().filter((panel) => lead.includes(panel) || headPanels().includes(panel));
    const read = new Map();
    const show = () => {
        heads = panels.map((panel) => read.get(panel)).filter(Boolean);
        leading = lead.map((panel) => read.get(panel));
        pointed = background = null;
        drawLines();
    };
    // The leading heads first: the others may take a while.
    for (const panel of [...lead, ...panels.filter((panel) => !lead.includes(panel))]) {
        await pause();
        const {numbers, flags} = await numbersOf(of, panel);
        if (mine !== linesRead) return;
        read.set(panel, {head: hasHeads() ? placesOf(panel).at(-1) : null, numbers, flags});
        if (read.size !== lead.length) continue;
        show();
        fillLists();
    }
    show();
}

function pointAt(next) {
    if (!isInFull() && next) return;
    if (pointed?.by === next?.by && pointed?.index === next?.index) return;
    pointed = next;
    drawLines();
}

function pressInList(event, by) {
    const index = Number(event.target.dataset.index);
    if (Number.isNaN(index) || event.ctrlKey || event.altKey || event.metaKey) return;
    const other = otherSide[by], isFollowed = !isInFull() && by === chosen.by;
    const indices = [...placeIn[by].keys()], at = indices.indexOf(index);
    const go = (side, next) => {
        if (isFollowed && side === by) choose({[by]: next});
        buttonOf(side, next)?.focus();
    };
    const nearest = () => [...placeIn[other].keys()].reduce(
        (best, token) => Math.abs(token - index) < Math.abs(best - index) ? token : best);
    const acts = {
        ArrowUp: () => go(by, isFollowed ? Math.max(index - 1, 0) : indices[Math.max(at - 1, 0)]),
        ArrowDown: () => go(by, isFollowed ? Math.min(index + 1, sideOf(by).size - 1)
                                           : indices[Math.min(at + 1, indices.length - 1)]),
        Home: () => go(by, isFollowed ? 0 : indices[0]),
        End: () => go(by, isFollowed ? sideOf(by).size - 1 : indices.at(-1)),
        ArrowLeft: () => by === 'column' && go('row', nearest()),
        ArrowRight: () => by === 'row' && go('column', nearest()),
    };
    if (!Object.hasOwn(acts, event.key)) return;
    acts[event.key]();
    event.preventDefault();
}

for (const [by, list] of Object.entries(lists)) {
    const tokenAt = (event) => event.target.closest('[data-index]');
    const index = (event) => Number(tokenAt(event).dataset.index);
    for (const kind of ['pointerover', 'focusin'])
        list.addEventListener(kind, (event) => pointAt(tokenAt(event) && {by, index: index(event)}));
    for (const kind of ['pointerleave', 'focusout']) list.addEventListener(kind, () => pointAt(null));
    list.addEventListener('click', (event) => tokenAt(event) && choose({by, [by]: index(event)}));
    list.addEventListener('keydown', (event) => pressInList(event, by));
}
element('swap').addEventListener('click', () => {
    const by = otherSide[chosen.by];
    choose({by, [by]: chosen[chosen.by]});
});
element('this-head').addEventListener('change', showLines);
