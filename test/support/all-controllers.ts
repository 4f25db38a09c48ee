import { loadControllers } from '../../src/controllers/catalog.ts';
import { selectControllers } from '../../src/controllers/selection.ts';
import { allControllers, platformCatalog, type PlatformSettings } from '../../src/platforms/catalog.ts';
import type { ControllerSpec } from '../../src/runtime/key-loop.ts';

const make = await loadControllers(allControllers);

/**
 * The controllers that these settings allow.
 *
 * @param choice as `--controllers`; `*` leaves out the load balancer, which needs AddressPools.
 */
export function controllersOf(
  settings: PlatformSettings,
  choice: readonly string[] = ['*'],
): readonly ControllerSpec[] {
  const specs = make(settings);
  const known = specs.map(({ name }) => ({ name, onByDefault: name !== 'load-balancer-controller' }));
  const names = selectControllers(choice, known);
  return specs.filter(({ name }) => names.includes(name));
}

/** Those of kinds that others define. */
export function platformControllers(settings: PlatformSettings): readonly ControllerSpec[] {
  const names = platformCatalog.map(({ name }) => name);
  return make(settings).filter(({ name }) => names.includes(name));
}
