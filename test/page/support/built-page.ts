import { join } from 'node:path';

/** What the tests of the page look at, made once for all of them. */
export const builtPage = join('node_modules', '.cache', 'page-of-tests');

/** Files that the page gives, and pictures for eyes. */
export const screenshots = join('node_modules', '.cache', 'page-screenshots');

/** Whether pictures for eyes are made: they take a fifth of the time. */
export const takesPictures = process.env['SERVICENET_SCREENSHOTS'] !== undefined;
