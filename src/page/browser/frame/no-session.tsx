import { Command } from '../parts/commands.tsx';
import { PageProvider } from '../parts/page-context.ts';
import { RowStore } from '../state/row-store.ts';
import { parsePlace } from '../state/place.ts';

/** Shown instead of the page without a session. The URL stays: the new link may be pasted into this tab. */
export function NoSession({ problem }: { readonly problem?: string }) {
  const nothing = (): void => undefined;
  const page = {
    ...{
      rows: new RowStore(),
      isCurrent: false,
      place: parsePlace('/', ''),
      atMs: undefined,
      clockMs: 0,
      nowMs: 0,
      refresh: 0,
    },
    ...{ go: nothing, explain: nothing, announce: nothing, refreshNow: nothing, width: 'wide' as const },
  };
  return (
    <PageProvider value={page}>
      <main class="no-session">
        <h1>servicenet</h1>
        {problem !== undefined && problem !== '' && <p>{problem}</p>}
        <p>
          This page opens with a link, which holds a key. Where <code>servicenet up</code> runs, this prints
          it:
        </p>
        <Command line="servicenet page" />
        <p class="muted">
          Open the link in this tab to see what its address says; a bookmark of the page needs no key.
        </p>
      </main>
    </PageProvider>
  );
}
