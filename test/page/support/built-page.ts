import { join } from 'node:path';

/** What the tests of the page look at, made once for all of them. */
export const builtPage = join('node_modules', '.cache', 'page-of-tests');

/** Pictures for eyes, kept as artifacts of a run. */
export const screenshots = join('node_modules', '.cache', 'page-screenshots');
