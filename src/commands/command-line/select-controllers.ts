import { WrongValue } from '../../flags/readers.ts';
import type { SelectControllers } from '../../flags/up.ts';
import { localControllers, remoteControllers } from '../../controllers/names.ts';
import { type KnownController, selectControllers, UnknownControllerError } from '../../controllers/run.ts';

/** `--controllers` of `up`, and the option of `servicenet/testing`. */
export const selectLocal: SelectControllers = (choice, cluster) => select(choice, localControllers(cluster));

/** `--controllers` of `servicenet controller`. */
export function selectRemote(choice: readonly string[]): readonly string[] {
  return select(choice, remoteControllers());
}

/** @throws {WrongValue} for a name that is not known. */
function select(choice: readonly string[], known: readonly KnownController[]): readonly string[] {
  try {
    return selectControllers(choice, known);
  } catch (error) {
    throw error instanceof UnknownControllerError ? new WrongValue(error.message) : error;
  }
}
