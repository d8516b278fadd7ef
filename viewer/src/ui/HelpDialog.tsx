// The keys, from the table that makes them work.
import { COMMANDS, VIEW_KEYS } from './commands';
import { Dialog } from './Dialog';
import { IDES, ideSetting, keepIde } from './ide';

export function HelpDialog() {
  const keys: (readonly [string, string])[] = [
    ...VIEW_KEYS,
    ...COMMANDS.map((command) => [command.key, command.label] as const),
  ];
  return (
    <Dialog name="help" title="Keys and pointer">
      <table class="keys">
        <tbody>
          {keys.map(([key, label]) => (
            <tr key={key}>
              <th scope="row">
                <kbd>{key}</kbd>
              </th>
              <td>{label}</td>
            </tr>
          ))}
          <tr>
            <th scope="row">Click</th>
            <td>Zoom to the frame; a double click zooms all the way out</td>
          </tr>
          <tr>
            <th scope="row">Right-click</th>
            <td>Callers and callees of the frame or row, and more</td>
          </tr>
        </tbody>
      </table>
      <Editor />
      <p>
        The width of a frame is its total time. Its self time is the part that no other frame
        covers. Matched is the share of the stacks with at least one matching frame.
      </p>
    </Dialog>
  );
}

/** Which editor the menu of a frame opens a method in. */
function Editor() {
  const { ide, folder } = ideSetting.value;
  return (
    <p class="actions">
      <label>
        Open methods in{' '}
        <select
          value={ide}
          onChange={(event) => {
            const chosen = event.currentTarget.value;
            const known = IDES.find(([name]) => name === chosen)?.[0] ?? '';
            keepIde({ ide: known, folder });
          }}
        >
          {IDES.map(([name, label]) => (
            <option key={name} value={name}>
              {label}
            </option>
          ))}
        </select>
      </label>
      {ide !== '' && (
        <input
          type="text"
          aria-label="Folder of sources"
          placeholder="/home/me/app/src/main/java"
          value={folder}
          onChange={(event) => keepIde({ ide, folder: event.currentTarget.value.trim() })}
        />
      )}
    </p>
  );
}
