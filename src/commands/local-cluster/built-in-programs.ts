/** The process of all built-in programs of Pods: the other one that knows `guests/`, as `network-process.ts` says. */
import { servePrograms } from '../../emulation/programs/serve-programs.ts';
import { guestImages } from '../../guests/index.ts';

servePrograms(guestImages);
