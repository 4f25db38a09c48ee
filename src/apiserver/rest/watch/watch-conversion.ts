import type { StorageEvent } from '../../storage/storage.ts';
import type { VersionConversion } from '../served-resource.ts';

/**
 * Events with their objects converted by a webhook, in one request.
 *
 * @param withPrevious whether the versions before are needed, too.
 * @throws what the conversion throws.
 */
export async function convertEvents(
  conversion: Pick<VersionConversion, 'read'>,
  events: readonly StorageEvent[],
  withPrevious: boolean,
): Promise<StorageEvent[]> {
  const versions = events.flatMap(({ current, previous }) =>
    previous === undefined || !withPrevious ? [current] : [current, previous],
  );
  const served = (await conversion.read(versions)).values();
  return events.map((event) => {
    const { value: current = event.current } = served.next();
    const previous = event.previous === undefined || !withPrevious ? event.previous : served.next().value;
    return { ...event, current, previous };
  });
}
