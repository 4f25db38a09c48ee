import { buildPage } from '../../../hack/build-page.ts';
import { builtPage } from './built-page.ts';

/** Before all tests of the page. */
export async function setup(): Promise<void> {
  await buildPage(builtPage);
}
