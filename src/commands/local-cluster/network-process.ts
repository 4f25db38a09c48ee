/**
 * The process inside the cluster network. It is an entry of `commands/`, though `emulation/` has all that it does: only
 * here is it known that `guests/` has programs for containers.
 */
import { serveNetwork } from '../../emulation/process.ts';
import { guestImages } from '../../guests/index.ts';

await serveNetwork(guestImages);
