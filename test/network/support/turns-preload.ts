/** Loaded into the process of a cluster network by `turns-inside.ts`: says how long its turns are, at each SIGUSR2. */
import { renameSync, writeFileSync } from 'node:fs';
import { TurnWatchdog } from '../../support/watchdog/turns.ts';

const file = process.env['TURNS_FILE'] ?? '';
const watchdog = new TurnWatchdog();
let asked = 0;
const say = (): void => {
  // Readers find either answer whole.
  writeFileSync(`${file}.new`, `${asked++} ${watchdog.longest()}`);
  renameSync(`${file}.new`, file);
};
process.on('SIGUSR2', say);
say();
