// Sliders and play buttons of a page of 'linmdp watch'. All frames are in the page; nothing is fetched.
"use strict";
(() => {
  const frames = JSON.parse(document.getElementById("frames").textContent);
  for (const film of document.querySelectorAll(".film")) {
    const mine = frames[Number(film.dataset.film)];
    const [image, slider, button] = ["img", "input", "button"].map((tag) => film.querySelector(tag));
    let timer = 0;
    const show = () => (image.src = mine[Number(slider.value)]);
    const stop = () => {
      clearInterval(timer);
      timer = 0;
      button.textContent = "play";
    };
    const next = () => {
      if (Number(slider.value) >= mine.length - 1) return stop();
      slider.value = String(Number(slider.value) + 1);
      show();
    };
    slider.addEventListener("input", () => (stop(), show()));
    button.addEventListener("click", () => {
      if (timer) return stop();
      if (Number(slider.value) >= mine.length - 1) slider.value = "0";
      show();
      button.textContent = "stop";
      timer = setInterval(next, Number(film.dataset.wait));
    });
  }
})();
