// Transforms of the stacks, each a button that takes it back.
import { plain, shortened } from '../data/plain';
import type { Store } from '../state/store';
import { words } from '../tree/transform';

export function Transforms({ store }: { store: Store }) {
  const { transforms } = store;
  const list = transforms.value;
  if (list.length === 0) return null;
  return (
    <div class="group transforms" role="group" aria-label="Transforms of the stacks">
      {list.map((transform, i) => (
        <button
          key={i}
          type="button"
          title="Undo this"
          onClick={() => (transforms.value = list.filter((_, at) => at !== i))}
        >
          {shortened(plain(words(transform)), 80)} ✕
        </button>
      ))}
      {list.length > 1 && (
        <button type="button" onClick={() => (transforms.value = [])}>
          Undo all transforms
        </button>
      )}
    </div>
  );
}
