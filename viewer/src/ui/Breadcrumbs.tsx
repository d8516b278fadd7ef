// The way from the root to the frame that is zoomed to. Long ways lose their middle.
import { shortened } from '../data/plain';
import type { Store } from '../state/store';
import { pathTo } from '../tree/tree';

const HEAD = 2;
const TAIL = 5;

export function Breadcrumbs({ store }: { store: Store }) {
  const [tree, zoom] = [store.tree.value, store.zoom.value];
  if (!tree || zoom === 0 || zoom >= tree.size) return null;
  const path = pathTo(tree, zoom);
  const cut = path.length > HEAD + TAIL + 1;
  const shown = cut ? [...path.slice(0, HEAD), -1, ...path.slice(-TAIL)] : path;
  return (
    <nav class="crumbs" aria-label="Zoomed to">
      <ol>
        {shown.map((node) =>
          node < 0 ? (
            <li key="cut">… {path.length - HEAD - TAIL} more …</li>
          ) : (
            <li key={node}>
              <button
                type="button"
                class="quiet"
                aria-current={node === zoom ? 'location' : undefined}
                onClick={() => store.zoomTo(node)}
              >
                {node === 0 ? 'all' : shortened(nameOf(store, tree.key(node)), 60)}
              </button>
            </li>
          ),
        )}
      </ol>
    </nav>
  );
}

function nameOf(store: Store, key: number): string {
  const keys = store.keys.value;
  const className = keys.className(key);
  const simple = className.slice(className.lastIndexOf('.') + 1);
  const method = keys.methodName(key) || '(unnamed)';
  return simple && !className.includes('.so') ? `${simple}.${method}` : method;
}
