// The logo of the console: three bars, of which the last one is faded.

export function Logo() {
  return (
    <svg className="logo" width="24" height="24" viewBox="0 0 24 24" aria-hidden="true">
      <rect x="2" y="9" width="5" height="13" rx="1" fill="var(--accent)" />
      <rect x="9.5" y="3" width="5" height="19" rx="1" fill="var(--accent)" />
      <rect
        x="17.5"
        y="12.5"
        width="4"
        height="9"
        rx="1"
        fill="none"
        stroke="var(--edge)"
        strokeDasharray="2 2"
      />
    </svg>
  )
}
