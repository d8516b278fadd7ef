// Children of every node, from an array of parents, by counting.

export class Children {
  private readonly first: Uint32Array;
  private readonly list: Uint32Array;

  /** `parent[node] < node` for all but the root, node 0. */
  constructor(parent: Uint32Array, n: number) {
    this.first = new Uint32Array(n + 1);
    this.list = new Uint32Array(Math.max(0, n - 1));
    for (let node = 1; node < n; node++) this.first[parent[node]! + 1]! += 1;
    for (let node = 0; node < n; node++) this.first[node + 1]! += this.first[node]!;
    const free = this.first.slice();
    for (let node = 1; node < n; node++) this.list[free[parent[node]!]!++] = node;
  }

  of(node: number): Uint32Array {
    return this.list.subarray(this.first[node], this.first[node + 1]);
  }

  /** The children, heaviest first; the same order every time. Sorts in place. */
  sorted(node: number, weights: Float64Array): Uint32Array {
    return sortByWeight(this.of(node), weights);
  }
}

export function sortByWeight(nodes: Uint32Array, weights: Float64Array): Uint32Array {
  if (nodes.length < 2) return nodes;
  if (nodes.length > 24) return nodes.sort((a, b) => weights[b]! - weights[a]! || a - b);
  for (let i = 1; i < nodes.length; i++) {
    const node = nodes[i]!;
    let to = i;
    while (to > 0 && weights[nodes[to - 1]!]! < weights[node]!) {
      nodes[to] = nodes[to - 1]!;
      to--;
    }
    nodes[to] = node;
  }
  return nodes;
}
