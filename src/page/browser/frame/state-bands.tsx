import { usePage } from '../parts/page-context.ts';
import { PlaceLink, age, Age, digits, Text } from '../parts/words.tsx';
import { withQuery } from '../state/place.ts';
import type { Connection } from '../state/stream.ts';

/** Bands above the view: what is loading, cut off, or may not be read. */
export function StateBands({ connection }: { readonly connection: Connection }) {
  const { rows, place, isCurrent, atMs, clockMs } = usePage();
  const { loading, forbidden, disconnected, knownSince } = rows.status;
  const toNow = <PlaceLink to={withQuery(place, { at: undefined })}>Back to now</PlaceLink>;
  const ended = rows.cluster?.kind === 'kubeconfig' ? '`servicenet page`' : '`servicenet up`';
  return (
    <>
      {connection.kind === 'cut' && (
        <p class="band bad" role="alert">
          <strong>
            {ended.replaceAll('`', '')} does not answer: it has ended, or is being started again.
          </strong>{' '}
          Since {age(new Date(connection.sinceMs).toISOString(), clockMs)}; next try{' '}
          {Math.max(0, Math.ceil((connection.retryMs - clockMs) / 1000))} s. What you see is as it was{' '}
          <Age time={rows.at} /> ago.
        </p>
      )}
      {connection.kind === 'live' && disconnected !== undefined && (
        <p class="band bad" role="alert">
          <strong>
            <Text>{disconnected.message}</Text>
          </strong>{' '}
          Since <Age time={disconnected.since} />. What you see is the last known state.
        </p>
      )}
      {atMs !== undefined && isCurrent && (
        <p class="band warn" role="status">
          {knownSince === undefined ? (
            <>
              The cluster as it was at <time dateTime={rows.at}>{rows.at}</time>, {age(rows.at, clockMs)}{' '}
              ago.{' '}
            </>
          ) : (
            <>
              Nothing is known of before <time dateTime={knownSince}>{knownSince}</time>: since then somebody
              looks.{' '}
            </>
          )}
          {toNow}
        </p>
      )}
      {loading.length > 0 && (
        <p class="band" role="status">
          Loading{' '}
          {loading
            .map(({ kind, read, total }) =>
              total === undefined
                ? `${kind}s ${digits(read)}`
                : `${kind}s ${digits(read)} of ${digits(total)}`,
            )
            .join(', ')}
        </p>
      )}
      {forbidden.length > 0 && (
        <p class="band warn">
          May not be listed with these credentials: <strong>{forbidden.join(', ')}</strong>. What depends on
          them is not known.
        </p>
      )}
    </>
  );
}
